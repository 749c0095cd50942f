"""Features of (question, turn) pairs: those of turn, question and dates, and all features together.

Nothing here sees a label, an id of a benchmark, or the order of a file. All figures of a question come from its own
ranking and corpus, so that a part of the corpora gives the same features as the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import polars as pl
from polars import selectors as cs

from memlab.learn.ranker.signals import Ints, signal_features
from memlab.learn.ranker.words import likeness_features, overlap_features, spoken_words, turn_terms
from memlab.pipeline.tables import SESSION, Tables, with_text
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


def features(tables: Tables, depth: int, alone: bool = False) -> pl.DataFrame:
    """Return (question, unit, one Float32 column per feature) for the first ``depth`` turns of each question.

    Rows are in the order of the ranking. Where a control searches with another question's words, its text is that of
    the question here too. ``alone``, a control, has what the turn tells by itself and the question by itself in place
    of what compares them. Raises MemlabError if the units are not turns.
    """
    wrong = tables["queries"].filter(pl.col("kind") == "wrong").select("question", pl.col("text_id").alias("other"))
    asked = tables["questions"].join(wrong, on="question", how="left", maintain_order="left")
    tables = tables.updated({"questions": asked.with_columns(
        pl.coalesce("other", "text_id").alias("text_id")).drop("other")})
    ranking, units = tables["ranking"], tables["units"]
    if not units["level"].eq("turn").all():
        raise MemlabError("learned fusion ranks turns; these units are of another level", where="learn/ranker",
                          fix="rank at level turn, and roll up behind it")
    placed = ranking.join(units.select("unit", *SESSION, pl.col("turns").list.first().alias("turn")), on="unit",
                          maintain_order="left")
    head = placed.filter(pl.col("rank") <= depth)
    said, here = nearby(head, tables)
    spoken = spoken_words(said)
    makers: dict[str, Callable[[], pl.DataFrame]] = {} if alone else {  # those that take longest first
        "signals": lambda: signal_features(placed, depth),
        "overlap": lambda: overlap_features(head, said, here, spoken, tables),
        "likeness": lambda: likeness_features(head, turn_terms(spoken, said.height, here)),
        "dates": lambda: date_features(head, tables)}
    makers["turn"] = lambda: turn_features(head, said, here, tables)
    if alone:  # elsewhere trees learn the habits of a data set from them, which hold for no other
        makers["question"] = lambda: question_features(head, tables)
    with ThreadPoolExecutor(usable_cores()) as pool:  # NumPy and Polars compute outside Python's lock
        made = dict(zip(makers, pool.map(lambda make: make().cast(pl.Float32), makers.values())))
    rows = pl.concat([head.select(PAIR), *(made[name] for name in COLUMNS if name in made)], how="horizontal")
    return rows.drop(cs.starts_with("speaker named")) if alone else rows


def nearby(head: pl.DataFrame, tables: Tables) -> tuple[pl.DataFrame, Ints]:
    """Return the turns of these rows and their neighbours, and the place of each row's own turn among them, (n,).

    Turns have their text, ``place`` in the session and its ``size``.
    """
    own = head.select("unit", *SESSION, "turn").unique("unit")
    wanted = pl.concat([own.select(*SESSION, pl.col("turn") + step) for step in (-1, 0, 1)]).unique()
    turns = tables["turns"].join(own, on=SESSION, how="semi").sort(*SESSION, "turn").with_columns(
        pl.len().over(SESSION).alias("size"), pl.int_range(pl.len()).over(SESSION).alias("place"))
    said = with_text(turns.join(wanted, on=[*SESSION, "turn"], how="semi", maintain_order="left"),
                     tables["texts"]).with_columns(pl.col("text").fill_null(""))
    row_of = own.join(said.select(*SESSION, "turn").with_row_index("row"), on=[*SESSION, "turn"])
    rows = head.select("unit").join(row_of, on="unit", how="left", maintain_order="left")["row"]
    return said, rows.cast(pl.Int64).to_numpy()


def turn_features(head: pl.DataFrame, said: pl.DataFrame, here: Ints, tables: Tables) -> pl.DataFrame:
    """Return features of each row's turn, its text, neighbours, place, and speaker; ``said``, ``here``: ``nearby``."""
    plain = said.with_columns(
        pl.col("text").str.count_matches(r"\w+").log1p().alias("words"),
        pl.col("text").str.strip_chars_end().str.ends_with("?").alias("ends with ?"),
        pl.col("text").str.count_matches(r"[a-z,;] [A-Z][a-z]").log1p().alias("names"),
        (pl.col("role") == "assistant").alias("assistant"),
        *(pl.col("text").str.contains(pattern).alias(name) for name, pattern in FLAGS.items()),
        (pl.col("text").str.count_matches(FLAGS["first person"]) / (1 + pl.col("text").str.count_matches(r"\w+"))
         ).alias("i share"),
        (pl.col("place") / (pl.col("size") - 1).clip(1)).alias("place share"),
        pl.col("place").log1p().alias("place"), pl.col("size").log1p().alias("session size"),
    )
    for step in (-1, 1):
        near = plain.select(*SESSION, pl.col("turn") - step, *(pl.col(name).alias(f"{name} {step:+}") for name in NEAR))
        plain = plain.join(near, on=[*SESSION, "turn"], how="left", maintain_order="left")
    kept = [c for c in plain.columns if c not in (*SESSION, "turn", "role", "speaker", "text_id", "text", "size")]
    plain = plain.with_columns(pl.col("speaker").str.to_lowercase().str.extract(r"^(\w+)").alias("\0name"))
    rows = plain[here].with_columns(head["question"])
    questions = with_text(tables["questions"], tables["texts"]).select(
        "question", pl.col("text").fill_null("").str.to_lowercase().alias("\0asked")).with_columns(
        (pl.col("\0asked").str.count_matches(r"\b(?:and|both)\b") > 0).alias("\0others"))
    rows = rows.join(questions, on="question", how="left", maintain_order="left")
    named = pl.col("\0asked").str.contains(pl.col("\0name"), literal=True)
    return rows.select(*kept, named.cast(pl.Float64).alias("speaker named"),
                       (named & pl.col("\0others")).cast(pl.Float64).alias("speaker named, and"))


def question_features(head: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return features of each row's question: the words that it asks with, and its length."""
    asked = with_text(tables["questions"], tables["texts"]).with_columns(
        pl.col("text").fill_null("").str.to_lowercase().alias("lower"))
    made = asked.select(
        "question", *(pl.col("lower").str.contains(rf"\b{word}\b").alias(f"asks {word}") for word in QUESTION_WORDS),
        pl.col("lower").str.count_matches(r"\w+").log1p().alias("question words"),
        *(pl.col("lower").str.contains(pattern).alias(name) for name, pattern in QUESTION_FLAGS.items()))
    return head.select("question").join(made, on="question", how="left", maintain_order="left").drop("question")


def date_features(head: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return features of each row's session date against the question: its age, its place, the days that are named.

    "date place" is the share of the question's ranked sessions that are older. A date named in the question
    (``window_of``) is compared in days: 0 inside the window. Null without a date, or if none is named.
    """
    windows = [(q, *window) for q, text, day in with_text(tables["questions"], tables["texts"]).select(
        "question", "text", "asked_on").iter_rows() if (window := window_of(text or "", day and day.date()))]
    named = pl.DataFrame(windows, schema={"question": pl.Int32, "first": pl.Date, "last": pl.Date}, orient="row")
    session = ["question", *SESSION]
    rows = head.select(session).unique().join(tables["sessions"], on=SESSION, how="left", maintain_order="left")
    rows = rows.join(tables["questions"].select("question", "asked_on"), on="question", how="left",
                     maintain_order="left").join(named, on="question", how="left", maintain_order="left")
    said = pl.col("said_on").dt.date()
    places = rows.select("question", "said_on").unique().drop_nulls().with_columns(
        ((pl.col("said_on").rank("ordinal").over("question") - 1) / (pl.len().over("question") - 1).clip(1)
         ).alias("date place")).drop_nulls()
    rows = rows.join(places, on=["question", "said_on"], how="left", maintain_order="left")
    days = pl.max_horizontal((pl.col("first") - said).dt.total_days(), (said - pl.col("last")).dt.total_days(),
                             pl.lit(0))
    after = (said - pl.col("first")).dt.total_days()
    made = rows.select(
        *session, (pl.col("asked_on") - pl.col("said_on")).dt.total_days().clip(0).log1p().alias("age"), "date place",
        pl.when(pl.col("first").is_not_null() & said.is_not_null()).then(days.log1p()).alias("days from named"),
        pl.when(pl.col("first").is_not_null()).then(after.clip(-60, 60)).alias("days after named"),
    )
    return head.select(session).join(made, on=session, how="left", maintain_order="left").drop(session)
