"""A chat model's opinion on the head of a ranking: a score a unit, one by one or all in one list."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.models.chat.protocol import Chat, Completion, Message, Prompt
from memlab.models.chat.replies import MARGIN, parse_json, trim
from memlab.question_types import first_of
from memlab.rank.fusion import NonNegative, Normaliser, Scorer, check_names, fits
from memlab.rank.rerank import below, passages_of
from memlab.rank.units import ranked, signals_of
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Notes, Tables, with_text

_TASK = """You judge how useful memories of past conversations are for answering a question. Score from 0 to 10: \
10 = holds the answer or a part of it, 7 = needed to work the answer out, 3 = the same subject but nothing that \
answers, 0 = something else. Judge what a memory says, not how it is written. Memories may bear the day they \
were said on."""

KINDS = {
    "counting": "The answer is gathered from many memories: every single item that counts deserves a high score, "
                "however small, and so does a memory that takes an item back.",
    "multi_session": "The answer is put together from several memories: every one that holds a piece of it deserves a "
                     "high score, even if it answers nothing alone, and so does one that leads to such a piece.",
    "temporal": "The answer depends on when things happened: score high what tells or implies the date of an event in "
                "question, and what was said within the time that the question names.",
    "preference": "The person wants advice that fits them: score high what shows their tastes, belongings, habits, "
                  "limits or earlier experience on this matter, even if it answers nothing directly.",
    "assistant": "The question is about what the assistant said: score high the assistant's own words on this matter, "
                 "and lower what the person alone said.",
    "update": "The question is about how things stand now: score every statement of this matter high, the most recent "
              "one highest.",
    "factual": "One memory states the fact asked for: score that one high and those that merely share words low.",
    "general": "Score high what a well-informed answer would rest on, and lower what is merely near the subject.",
    "conceptual": "The question asks for reasons or for how things hang together: score high what explains, weighs up "
                  "or lets one conclude, above a bare mention.",
    "procedural": "The question asks how something is done: score high the steps themselves, the settings and the "
                  "pitfalls, above talk about the result.",
}
"""What counts for a question of each class of ``memlab.question_types``."""

_ONE = 'Reply as JSON: {"score": a whole number from 0 to 10}.'
_MANY = ('Score every memory by its number. Reply as JSON, the best first: {"scores": [{"index": 1, "score": 10}, '
         "...]}. What you leave out counts as 0.")
_SCORE = {"type": "integer", "minimum": 0, "maximum": 10}
_ITEM = {"type": "object", "properties": {"index": {"type": "integer"}, "score": {"type": "number"}},
         "required": ["index", "score"], "additionalProperties": False}
ONE = json.dumps({"type": "object", "properties": {"score": _SCORE}, "required": ["score"],
                  "additionalProperties": False})
MANY = json.dumps({"type": "object", "properties": {"scores": {"type": "array", "items": _ITEM}},
                   "required": ["scores"], "additionalProperties": False})
_ONE_REPLY = 24
_ITEM_REPLY = 20
"""Tokens of a reply: of one score, and of one item of a list."""


@dataclass(frozen=True)
class Asked:
    """A question as the model is shown it; ``kind`` is null where it is not told what counts."""

    words: str
    day: date | None
    kind: str | None

    def system(self, how: str) -> str:
        """Return the task, by the kind of question."""
        return "\n".join([_TASK, *([KINDS[self.kind]] if self.kind else []), how])

    def said(self) -> str:
        """Return the question with its day."""
        return f"Question{f' (asked on {self.day})' if self.day else ''}: {self.words}"


def pointwise(chat: Chat, asked: Asked, text: str) -> tuple[Prompt, bool]:
    """Ask for the score of one memory; tell whether it was cut to fit."""
    system, lead, end = asked.system(_ONE), f"{asked.said()}\n\nMemory:\n", "\n\nScore:"
    room = chat.window - _ONE_REPLY - MARGIN - chat.count(system) - chat.count(lead + end)
    shown = trim(chat, text, room)
    return Prompt((Message("system", system), Message("user", lead + shown + end)), schema=ONE,
                  max_tokens=_ONE_REPLY), shown != text


def listwise(chat: Chat, asked: Asked, texts: list[str]) -> tuple[Prompt, int]:
    """Ask for the scores of all memories at once, numbered from 1; tell how many were cut to fit."""
    reply = _ITEM_REPLY * (len(texts) + 1)
    system, lead, end = asked.system(_MANY), f"{asked.said()}\n\nMemories:\n", "\n\nScores:"
    marks = [f"\n[{n}] " for n in range(1, len(texts) + 1)]
    room = chat.window - reply - MARGIN - chat.count(system) - chat.count(lead + end) - chat.count("".join(marks))
    sizes = [chat.count(text) + 1 for text in texts]
    shown = [text if size <= limit else trim(chat, text, limit - 1)
             for text, size, limit in zip(texts, sizes, fair(sizes, room))]
    body = "".join(mark + text for mark, text in zip(marks, shown))
    return Prompt((Message("system", system), Message("user", lead + body + end)), schema=MANY,
                  max_tokens=reply), sum(a != b for a, b in zip(texts, shown))


def fair(sizes: list[int], room: int) -> list[int]:
    """Share room among texts of these sizes: the short ones whole, the long ones alike.

    >>> fair([10, 100, 40], 90)
    [10, 40, 40]
    """
    limits = [0] * len(sizes)
    for left, at in zip(range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__)):
        limits[at] = min(sizes[at], max(room, 0) // left)
        room -= limits[at]
    return limits


def one_score(reply: Completion) -> float | None:
    """Read a single score; None where there is none from 0 to 10."""
    read = parse_json(reply, ONE)
    return float(read["score"]) if read is not None and 0 <= read["score"] <= 10 else None


def many_scores(reply: Completion, count: int) -> list[float] | None:
    """Read the scores of ``count`` memories, 0 for what is left out; None for a reply that cannot be trusted.

    That is one without such a list, with a number that no memory has, or with a score outside 0 to 10. Of a memory
    named twice the first score counts.
    """
    read = parse_json(reply, MANY)
    if read is None:
        return None
    scores: dict[int, float] = {}
    for item in read["scores"]:
        if not (1 <= item["index"] <= count and 0 <= item["score"] <= 10):
            return None
        scores.setdefault(int(item["index"]), round(float(item["score"]), 1))
    return [scores.get(n, 0.0) for n in range(1, count + 1)]


_TIE = 1e-3
"""Spread over a pool by first-stage rank: scores of 0 to 10 tie often, and ties keep the first stage's order."""

Judged = dict[int, list[float] | None]
"""Question -> scores of its pool in the order of the ranking, or None where a reply could not be read."""


@stage
class LlmRerank:
    """Reorder the first ``pool`` units of each question by a chat model's scores; the others follow as they were.

    ``pointwise`` asks for 0 to 10 a unit, ``listwise`` for the scores of the whole pool in one reply; ``typed`` tells
    the model what counts for a question of the class that query/classify told. A unit is shown as the pair scorers
    of ``Rerank`` read it, its turns of these ``roles`` one a line, with its day where ``dates``; ``max_chars`` cuts
    it, and what the model's window does not hold is cut too, and counted. A unit without a text scores 0.

    A question with a reply that cannot be read keeps the first stage's order and is counted. ``weights`` and
    ``normaliser`` are those of ``Rerank``; equal scores keep the first stage's order.
    """

    reads: ClassVar = ("ranking", "units", "questions", "classes", "sessions", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    chat: Chat
    pool: Annotated[int, Field(ge=1, le=500)] = 20  # units that are judged
    mode: Literal["pointwise", "listwise"] = "pointwise"
    typed: bool = True  # the model is told what counts for a question of its class
    name: Annotated[str, Field(min_length=1)] = "llm"  # column of the ranking
    # whose turns are judged
    roles: tuple[Literal["user", "assistant"], ...] = Field(default=("user", "assistant"), strict=False)
    dates: bool = True  # the day of the question and of each unit are shown
    max_chars: Annotated[int, Field(ge=1)] | None = None  # 200 is a published system's cut, which loses evidence
    # its opinion alone; {rerank: 1, first: 0.5} mixes in the first stage
    weights: dict[str, NonNegative] = Field(default_factory=lambda: {"rerank": 1.0})
    normaliser: Normaliser = "zscore"  # over the pool, so that both opinions have one scale

    @model_validator(mode="after")
    def _some_weight(self) -> LlmRerank:
        if not any(self.weights.values()):
            raise ValueError("no weight is above 0; write {rerank: 1}")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with the new signal; warns of replies that could not be read and of what was cut."""
        ranking = tables["ranking"]
        if self.name in ranking.columns:
            raise MemlabError(f"the ranking has a signal '{self.name}' already", where="rank/rerank, name",
                              fix="choose another name")
        head = ranking.filter(pl.col("rank") <= self.pool)
        texts = self._texts(head, tables)
        pools = {int(question[0]): [texts.get(unit, "") for unit in rows["unit"]]
                 for question, rows in head.group_by(["question"], maintain_order=True)}
        asks = self._asked(tables)
        judge = self._one_by_one if self.mode == "pointwise" else self._in_one_list
        notes = Notes()
        judged = judge({q: (asks[q], pool) for q, pool in pools.items()}, store, notes)
        scores: list[float | None] = []
        for question, pool in pools.items():
            scores += judged[question] or [None] * len(pool)
        head = head.with_columns(pl.Series(self.name, scores, pl.Float64))
        kept = pl.col("question").is_in([q for q, found in judged.items() if found is None])
        scored = self._mixed(head.filter(~kept))
        rest = ranking.filter((pl.col("rank") > self.pool) & ~kept).with_columns(
            pl.lit(None, pl.Float64).alias(self.name))
        moved = ranked(pl.concat([scored, below(scored, rest)], how="diagonal"))
        asis = ranking.filter(kept).with_columns(pl.lit(None, pl.Float64).alias(self.name)).select(moved.columns)
        return Tables(ranking=pl.concat([moved, asis]).sort("question", "rank"), notes=notes.table())

    def _mixed(self, head: pl.DataFrame) -> pl.DataFrame:
        named = head.with_columns(pl.col("score").alias("first"), pl.col(self.name).alias("rerank"))
        known = ["first", "rerank", *(s for s in signals_of(head) if s not in (self.name, "first", "rerank"))]
        check_names("rank/rerank, weights", self.weights, known)
        signals = [s for s in known if any(fits(name, s) for name in self.weights)]
        mixed = Scorer(normaliser=self.normaliser, weights=self.weights).scored(named, signals)
        return mixed.with_columns(pl.col("score") - _TIE * pl.col("rank") / self.pool).select(head.columns)

    def _texts(self, head: pl.DataFrame, tables: Tables) -> dict[int, str]:
        """Return what is shown of each unit of the pools."""
        days = tables["units"].select("unit", *SESSION).join(tables["sessions"], on=SESSION, how="left").select(
            "unit", pl.col("said_on").dt.strftime("[%Y-%m-%d]\n").fill_null("").alias("day"))
        bodies = passages_of(head.select("unit").unique(), tables, self.roles).group_by("unit").agg(
            pl.col("text").str.join("\n"))
        body = pl.col("text") if self.max_chars is None else pl.col("text").str.head(self.max_chars)
        day = pl.col("day") if self.dates else pl.lit("")
        return dict(bodies.join(days, on="unit", how="left").select("unit", day + body).iter_rows())

    def _asked(self, tables: Tables) -> dict[int, Asked]:
        rows = with_text(tables["questions"], tables["texts"]).select("question", "text", pl.col("asked_on").dt.date())
        kinds = first_of(tables["classes"]) if self.typed else {}
        return {q: Asked(text, day if self.dates else None, kinds.get(q)) for q, text, day in rows.iter_rows()}

    def _one_by_one(self, pools: dict[int, tuple[Asked, list[str]]], store: Store, notes: Notes) -> Judged:
        prompts: dict[Prompt, bool] = {}
        wanted: dict[int, list[Prompt | None]] = {}
        for question, (asked, texts) in pools.items():
            made = [pointwise(self.chat, asked, text) if text else None for text in texts]
            prompts.update(pair for pair in made if pair)
            wanted[question] = [pair[0] if pair else None for pair in made]
        read = dict(zip(prompts, map(one_score, store.completions(self.chat, list(prompts), notes))))
        scores = {q: [read[p] if p else 0.0 for p in asked] for q, asked in wanted.items()}
        judged: Judged = {q: None if None in found else [s for s in found if s is not None]
                          for q, found in scores.items()}
        _warn_unread(list(read.values()).count(None), len(read), judged, notes)
        notes.warn(sum(prompts.values()), len(prompts), "memories were cut to fit the reranker's window")
        return judged

    def _in_one_list(self, pools: dict[int, tuple[Asked, list[str]]], store: Store, notes: Notes) -> Judged:
        made = [listwise(self.chat, asked, texts) for asked, texts in pools.values()]
        replies = store.completions(self.chat, [prompt for prompt, _ in made], notes)
        judged: Judged = {q: many_scores(reply, len(texts)) for (q, (_, texts)), reply in zip(pools.items(), replies)}
        _warn_unread(list(judged.values()).count(None), len(judged), judged, notes)
        notes.warn(sum(cut for _, cut in made), sum(len(texts) for _, texts in pools.values()),
                   "memories were cut to fit the reranker's window")
        return judged


def _warn_unread(unread: int, replies: int, judged: Judged, notes: Notes) -> None:
    kept = list(judged.values()).count(None)
    notes.warn(unread, replies, f"replies of the reranker could not be read; {kept:,} of {len(judged):,} questions "
               "keep the first stage's order")
