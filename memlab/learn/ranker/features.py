"""Features of (question, turn) pairs: those of turn, question and dates, and all features together.

Nothing here sees a label, an id of a benchmark, or the order of a file. All figures of a question come from its own
ranking and corpus, so that a part of the corpora gives the same features as the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
from polars import selectors as cs

from memlab.learn.ranker.pairs import Pairs, find, numbers
from memlab.learn.ranker.signals import Floats, Groups, signal_features
from memlab.learn.ranker.words import likeness_features, overlap_features, pair_words
from memlab.pipeline.tables import SESSION, Tables
from memlab.support.errors import MemlabError
from memlab.support.machine import usable_cores
from memlab.support.text.temporal.question_window import window_of

NEEDED = ("ranking", "units", "questions", "queries", "turns", "texts", "sessions")
"""Tables that the features are made from."""

PAIR = ["question", "unit"]

COLUMNS = ("turn", "question", "signals", "overlap", "dates", "likeness")
"""Order of the parts: trees draw features by their places, so another order gives other fits."""

QUESTION_WORDS = ("when", "where", "who", "what", "which", "why", "how", "how many", "how long", "would", "did", "is")

TIME_WORDS = (r"(?i)\b(?:yesterday|today|tonight|tomorrow|ago|last|next|since|recent(?:ly)?|"
              r"(?:mon|tues|wednes|thurs|fri|satur|sun)day|week(?:end)?s?|months?|years?|january|february|march|april|june|july|august|september|"
              r"october|november|december|(?:19|20)\d\d)\b")

FLAGS = {
    "digit": r"\d", "time word": TIME_WORDS, "asks": r"\?", "money": r"[$€£]\s?\d|\d+ (?:dollars|bucks)",
    "first person": r"(?i)\b(?:i|i'm|i've|i'd|i'll|my|me|mine|we|our|us|we're|we've)\b",
    "second person": r"(?i)\b(?:you|your|yours|you're|you've)\b",
    "filler": r"(?i)^\W*(?:wow|thanks|thank you|that's|sounds|awesome|cool|great|glad|congrat|nice|aw+|yeah|bye|hey|"
              r"hi|sure|no problem|absolutely|totally)\b",
    "quote": r"[\"“].{3,}[\"”]", "list": r"(?m)^\s*(?:\d+\.|[-*•])\s",
}
"""Name -> expression that the text of a turn matches."""


QUESTION_FLAGS = {
    "question in first person": r"\b(?:i|my|me|we)\b",
    "asks the first": r"\b(?:first|earliest|before|initially)\b",
    "asks the last": r"\b(?:last|latest|current(?:ly)?|now|most recent(?:ly)?)\b",
    "question to the assistant": r"\b(?:you|your)\b", "asks advice": r"\b(?:recommend|suggest|tips|advice|ideas)",
    "asks time": r"\b(?:days?|weeks?|months?|years?|date|time)\b",
}
"""Name -> expression that the text of a question matches, in small letters."""

NEAR = ("ends with ?", "words", "time word")
"""Features that the turns before and behind have as well."""

MANY = 2000
"""Pairs from which several threads save more time than they cost."""

DAY = 86400e6
"""Microseconds of a day."""


def features(tables: Tables, depth: int, alone: bool = False) -> pl.DataFrame:
    """Return (question, unit, one Float32 column per feature) for the first ``depth`` turns of each question.

    Rows are in the order of the ranking. Where a control searches with another question's words, its text is that of
    the question here too. ``alone``, a control, has what the turn tells by itself and the question by itself in place
    of what compares them. Raises MemlabError if the units are not turns.
    """
    ranking, units = tables["ranking"], tables["units"]
    if not units["level"].eq("turn").all():
        raise MemlabError("learned fusion ranks turns; these units are of another level", where="learn/ranker",
                          fix="rank at level turn, and roll up behind it")
    places = units[ranking["unit"]].select(*SESSION, pl.col("turns").list.first().alias("turn"))
    placed = pl.concat([ranking, places], how="horizontal")
    pairs = Pairs.of(placed.filter(pl.col("rank") <= depth), tables)
    makers: dict[str, Callable[[], pl.DataFrame]] = {"turn": lambda: turn_features(pairs)}
    if alone:  # elsewhere trees learn the habits of a data set from them, which hold for no other
        makers["question"] = lambda: question_features(pairs)
    else:  # those that take longest first
        texts = pair_words(pairs, tables["turns"])
        makers = {"signals": lambda: signal_features(placed, depth),
                  "overlap": lambda: overlap_features(pairs, texts),
                  "likeness": lambda: likeness_features(pairs.head, texts.of_turns(pairs.here)),
                  "dates": lambda: date_features(pairs, tables["sessions"]), **makers}
    cores = usable_cores() if pairs.head.height >= MANY else 1
    with ThreadPoolExecutor(cores) as pool:  # NumPy and Polars compute outside Python's lock
        made = dict(zip(makers, pool.map(lambda make: make().cast(pl.Float32), makers.values())))
    rows = pl.concat([pairs.head.select(PAIR), *(made[name] for name in COLUMNS if name in made)], how="horizontal")
    return rows.drop(cs.starts_with("speaker named")) if alone else rows


def turn_features(pairs: Pairs) -> pl.DataFrame:
    """Return features of each pair's turn, its text, neighbours, place, and speaker."""
    text = pl.col("text")
    said = {"words": text.str.count_matches(r"\w+").log1p(),
            "ends with ?": text.str.strip_chars_end().str.ends_with("?"),
            "names": text.str.count_matches(r"[a-z,;] [A-Z][a-z]").log1p(),
            "assistant": pl.col("role") == "assistant",
            **{name: text.str.contains(pattern) for name, pattern in FLAGS.items()}}
    own, at = np.unique(pairs.here, return_inverse=True)
    plain = pairs.said[own].select(
        pl.col("place").log1p(), *(value.alias(name) for name, value in said.items()),
        (text.str.count_matches(FLAGS["first person"]) / (1 + text.str.count_matches(r"\w+"))).alias("i share"),
        (pl.col("place") / (pl.col("size") - 1).clip(1)).alias("place share"),
        pl.col("size").log1p().alias("session size"),
        pl.col("speaker").str.to_lowercase().str.extract(r"^(\w+)").alias("\0name"))[at]
    near = pairs.said.select(said[name].cast(pl.Float64).alias(name) for name in NEAR).to_numpy()
    near = np.vstack([near, np.full(len(NEAR), np.nan)])  # the row -1
    sides = {f"{name} {step}": near[side[pairs.here], column]
             for step, side in (("-1", pairs.before), ("+1", pairs.behind)) for column, name in enumerate(NEAR)}
    asked = pairs.asked.select(pl.col("text").str.to_lowercase().alias("\0asked")).with_columns(
        (pl.col("\0asked").str.count_matches(r"\b(?:and|both)\b") > 0).alias("\0others"))[pairs.question]
    named = pl.col("\0asked").str.contains(pl.col("\0name"), literal=True)
    return pl.concat([plain, pl.DataFrame(sides, nan_to_null=True), asked], how="horizontal").select(
        ~cs.starts_with("\0"), named.cast(pl.Float64).alias("speaker named"),
        (named & pl.col("\0others")).cast(pl.Float64).alias("speaker named, and"))


def question_features(pairs: Pairs) -> pl.DataFrame:
    """Return features of each pair's question: the words that it asks with, and its length."""
    lower = pl.col("lower")
    return pairs.asked.select(pl.col("text").str.to_lowercase().alias("lower")).select(
        *(lower.str.contains(rf"\b{word}\b").alias(f"asks {word}") for word in QUESTION_WORDS),
        lower.str.count_matches(r"\w+").log1p().alias("question words"),
        *(lower.str.contains(pattern).alias(name) for name, pattern in QUESTION_FLAGS.items()))[pairs.question]


def date_features(pairs: Pairs, sessions: pl.DataFrame) -> pl.DataFrame:
    """Return features of each pair's session date against the question: its age, its place, the days that are named.

    "date place" is the share of the question's ranked sessions that are older. A date named in the question
    (``window_of``) is compared in days: 0 inside the window. Null without a date, or if none is named.
    """
    windows = [window_of(text, day and day.date()) or (None, None)
               for text, day in pairs.asked.select("text", "asked_on").iter_rows()]
    named = pl.DataFrame(windows, schema={"first": pl.Date, "last": pl.Date}, orient="row")
    first, last = (_floats(named[name].to_physical())[pairs.question] for name in named.columns)
    asked = _floats(pairs.asked["asked_on"].dt.epoch("us"))[pairs.question]
    width = int(sessions["session"].max() or 0) + 1  # type: ignore[arg-type]
    all_keys, own = (numbers(rows["corpus"]) * width + numbers(rows["session"]) for rows in (sessions, pairs.head))
    said = np.append(_floats(sessions["said_on"].dt.epoch("us")), np.nan)[find(all_keys, own)]
    day = np.floor(said / DAY)
    moments, moment = np.unique(said, return_inverse=True)
    key = pairs.question * len(moments) + moment
    distinct = np.unique(key[~np.isnan(said)])  # the moments of each question
    of_question = Groups(distinct // max(len(moments), 1))
    older = np.arange(len(distinct)) - of_question.start[of_question.of]
    place = np.append(older / np.maximum(of_question.size[of_question.of] - 1, 1), np.nan)
    return pl.DataFrame({
        "age": np.log1p(np.trunc((asked - said) / DAY).clip(0)),
        "date place": place[np.where(np.isnan(said), -1, np.searchsorted(distinct, key))],
        "days from named": np.log1p(np.maximum(np.maximum(first - day, day - last), 0)),
        "days after named": (day - first).clip(-60, 60)}, nan_to_null=True)


def _floats(column: pl.Series) -> Floats:
    """Return a column as numbers, (n,); nan where it is null."""
    return column.cast(pl.Float64).to_numpy()
