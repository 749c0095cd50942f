"""Reranking of the head of a ranking by a chat model, one unit at a time or all in one list."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, ClassVar, Literal

import polars as pl
from pydantic import Field

from memlab.models.chat.replies import MARGIN, parse_json, trim
from memlab.models.protocols import Chat, Completion, Message, Prompt
from memlab.pipeline.question_types import first_of
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Notes, Tables, with_text
from memlab.pipeline.transcript import NOTE, fence_data, mark_for, without_items
from memlab.stages.rank.rerank import PoolReranker, passages_of
from memlab.store import Store

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
"""What counts for a question of each class of ``memlab.pipeline.question_types``."""

_ONE = 'Reply as JSON: {"score": a whole number from 0 to 10}.'
_MANY = ('Score every memory by its number. Reply as JSON, the best first: {"scores": [{"index": 1, "score": 10}, '
         "...]}. What you leave out counts as 0.")
_ITEMS = ("Each memory begins with its number and the mark, in brackets: [1 ...]. Brackets without the mark belong to "
          "a memory.")
_SCORE = {"type": "integer", "minimum": 0, "maximum": 10}
ONE = json.dumps({"type": "object", "properties": {"score": _SCORE}, "required": ["score"],
                  "additionalProperties": False})
_ONE_REPLY = 24
_ITEM_REPLY = 20
"""Tokens of a reply with one score, and of one item of a list."""


def many(count: int) -> str:
    """Return the JSON schema of a list of scores of ``count`` memories."""
    index = {"type": "integer", "minimum": 1, "maximum": count}
    item = {"type": "object", "properties": {"index": index, "score": {**_SCORE, "type": "number"}},
            "required": ["index", "score"], "additionalProperties": False}
    return json.dumps({"type": "object", "properties": {"scores": {"type": "array", "items": item}},
                       "required": ["scores"], "additionalProperties": False})


@dataclass(frozen=True)
class ShownQuestion:
    """A question as the model is shown it; ``kind`` is its class, None for a prompt without."""

    text: str
    day: date | None
    kind: str | None

    def system(self, reply: str) -> str:
        """Return the task for a question of this kind, with the form of the reply."""
        return "\n".join([_TASK, *([KINDS[self.kind]] if self.kind else []), reply, NOTE])

    def line(self) -> str:
        """Return the question with its day."""
        return f"Question{f' (asked on {self.day})' if self.day else ''}: {self.text}"


Pools = dict[int, tuple[ShownQuestion, list[str]]]
"""Question -> the question as it is shown, and the texts of its pool in the order of the ranking."""

Judged = dict[int, list[float] | None]
"""Question -> the scores of its pool in the order of the ranking, or None if a reply could not be read."""


def pointwise(chat: Chat, question: ShownQuestion, text: str) -> tuple[Prompt, bool]:
    """Return the prompt for the score of one memory, and whether the memory was cut to fit."""
    system, end = question.system(_ONE), "\n\nScore:"
    parts, mark = {"QUESTION": question.line(), "MEMORY": ""}, mark_for([question.line(), text])
    room = chat.window - _ONE_REPLY - MARGIN - chat.count(system) - chat.count(fence_data(parts, mark) + end)
    shown = trim(chat, text, room)
    user = fence_data(parts | {"MEMORY": shown}, mark) + end
    return Prompt((Message("system", system), Message("user", user)), schema=ONE,
                  max_tokens=_ONE_REPLY), shown != text


def listwise(chat: Chat, question: ShownQuestion, texts: list[str], system: str = "", schema: str = "",
             item: int = _ITEM_REPLY) -> tuple[Prompt, int]:
    """Return the prompt for the scores of all memories, numbered from 1, and how many of them were cut to fit.

    ``system``, ``schema`` and the tokens of one ``item`` of the reply replace those of this module's own list. A
    memory's number stands beside a mark that is in no memory, so that no memory can pass for two.
    """
    reply = item * (len(texts) + 1)
    texts = [without_items(text) for text in texts]
    mark = mark_for([question.line(), *texts], size=4)
    system, end = f"{system or question.system(_MANY)}\n{_ITEMS}", "\n\nScores:"
    parts = {"QUESTION": question.line(), "MEMORIES": ""}
    marks = [f"[{n} {mark}] " for n in range(1, len(texts) + 1)]
    room = (chat.window - reply - MARGIN - chat.count(system) - chat.count(fence_data(parts, mark) + end)
            - chat.count("\n".join(marks)))
    sizes = [chat.count(text) + 1 for text in texts]
    shown = [text if size <= limit else trim(chat, text, limit - 1)
             for text, size, limit in zip(texts, sizes, fair(sizes, room))]
    user = fence_data(parts | {"MEMORIES": "\n".join(n + text for n, text in zip(marks, shown))}, mark) + end
    return Prompt((Message("system", system), Message("user", user)), schema=schema or many(len(texts)),
                  max_tokens=reply), sum(a != b for a, b in zip(texts, shown))


def fair(sizes: list[int], room: int) -> list[int]:
    """Return how much of each text fits if they share a room: short ones whole, long ones an equal part.

    >>> fair([10, 100, 40], 90)
    [10, 40, 40]
    """
    limits = [0] * len(sizes)
    for left, at in zip(range(len(sizes), 0, -1), sorted(range(len(sizes)), key=sizes.__getitem__)):
        limits[at] = min(sizes[at], max(room, 0) // left)
        room -= limits[at]
    return limits


def one_score(reply: Completion) -> float | None:
    """Read a single score from 0 to 10; None without one."""
    read = parse_json(reply, ONE)
    return None if read is None else float(read["score"])


def many_scores(reply: Completion, count: int) -> list[float] | None:
    """Read the scores of ``count`` memories, 0 for what is left out; None for a reply that cannot be trusted.

    That is a reply without such a list, with the number of no memory, or with a score outside 0 to 10. If a memory is
    named twice, its first score counts.
    """
    read = parse_json(reply, many(count))
    if read is None:
        return None
    scores: dict[int, float] = {}
    for item in read["scores"]:
        scores.setdefault(int(item["index"]), round(float(item["score"]), 1))
    return [scores.get(n, 0.0) for n in range(1, count + 1)]


@stage
class ChatReranker(PoolReranker, ABC):
    """Base of the rerankers by a chat model; ``judge`` asks for the scores.

    A unit is shown as ``Rerank`` reads it, one line per turn, with its day if ``dates``. ``max_chars`` cuts it; what
    exceeds the model's window is cut too, and counted. Units with equal scores keep the first stage's order; so does a
    question with an unreadable reply, which is counted.
    """

    reads: ClassVar = ("ranking", "units", "questions", "classes", "sessions", "turns", "texts", "memories")
    writes: ClassVar = ("ranking",)

    tie: ClassVar = 1e-3  # scores of 0 to 10 tie often

    chat: Chat
    pool: Annotated[int, Field(ge=1, le=500)] = 20  # units that are judged
    typed: bool = True  # the prompt says what counts for a question of its class
    name: Annotated[str, Field(min_length=1)] = "llm"  # column of the ranking
    dates: bool = True  # the day of the question and of each unit are shown
    max_chars: Annotated[int, Field(ge=1)] | None = None  # 200 is a published system's cut, which loses evidence

    @abstractmethod
    def judge(self, pools: Pools, store: Store, notes: Notes) -> Judged:
        """Return the scores of the pools."""

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with the new signal; warns of replies that could not be read and of what was cut."""
        ranking = tables["ranking"]
        head = self.head(ranking)
        texts = self._texts(head, tables)
        pools = {int(question): [texts.get(unit, "") for unit in rows["unit"]]
                 for (question,), rows in head.group_by(["question"], maintain_order=True)}
        questions = self._questions(tables)
        notes = Notes()
        judged = self.judge({q: (questions[q], pool) for q, pool in pools.items()}, store, notes)
        scores: list[float | None] = []
        for question, pool in pools.items():
            scores += judged[question] or [None] * len(pool)
        head = head.with_columns(pl.Series(self.name, scores, pl.Float64))
        unread = pl.col("question").is_in([q for q, scores in judged.items() if scores is None])
        reordered = self.reorder(head.filter(~unread), ranking.filter(~unread))
        kept = ranking.filter(unread).with_columns(pl.lit(None, pl.Float64).alias(self.name)).select(reordered.columns)
        return Tables(ranking=pl.concat([reordered, kept]).sort("question", "rank"), notes=notes.table())

    def _texts(self, head: pl.DataFrame, tables: Tables) -> dict[int, str]:
        """Return the text that is shown for each unit of the pools."""
        days = tables["units"].select("unit", *SESSION).join(tables["sessions"], on=SESSION, how="left").select(
            "unit", pl.col("said_on").dt.strftime("[%Y-%m-%d]\n").fill_null("").alias("day"))
        bodies = passages_of(head.select("unit").unique(), tables, self.roles).group_by("unit").agg(
            pl.col("text").str.join("\n"))
        body = pl.col("text") if self.max_chars is None else pl.col("text").str.head(self.max_chars)
        day = pl.col("day") if self.dates else pl.lit("")
        return dict(bodies.join(days, on="unit", how="left").select("unit", day + body).iter_rows())

    def _questions(self, tables: Tables) -> dict[int, ShownQuestion]:
        rows = with_text(tables["questions"], tables["texts"]).select("question", "text", pl.col("asked_on").dt.date())
        kinds = first_of(tables["classes"]) if self.typed else {}
        return {question: ShownQuestion(text, day if self.dates else None, kinds.get(question))
                for question, text, day in rows.iter_rows()}


@stage
class LlmRerank(ChatReranker):
    """Rerank by a chat model's scores from 0 to 10.

    ``pointwise`` asks for the score of one unit at a time, ``listwise`` for all scores of the pool in one reply. With
    ``typed`` the prompt says what counts for a question of its class (query/classify). A unit without a text scores
    0.
    """

    mode: Literal["pointwise", "listwise"] = "pointwise"

    def judge(self, pools: Pools, store: Store, notes: Notes) -> Judged:
        """Return the scores of the pools, by one prompt per unit or one per pool."""
        if self.mode == "pointwise":
            return self._pointwise(pools, store, notes)
        asked = {q: listwise(self.chat, question, texts) for q, (question, texts) in pools.items()}
        return ask_listwise(self.chat, pools, asked, many_scores, store, notes)

    def _pointwise(self, pools: Pools, store: Store, notes: Notes) -> Judged:
        cut: dict[Prompt, bool] = {}
        prompts: dict[int, list[Prompt | None]] = {}
        for number, (question, texts) in pools.items():
            pairs = [pointwise(self.chat, question, text) if text else None for text in texts]
            cut.update(pair for pair in pairs if pair)
            prompts[number] = [pair[0] if pair else None for pair in pairs]
        read = dict(zip(cut, map(one_score, store.completions(self.chat, list(cut), notes))))
        judged: Judged = {}
        for number, asked in prompts.items():
            scores = [read[prompt] if prompt else 0.0 for prompt in asked]
            judged[number] = None if None in scores else [s for s in scores if s is not None]
        _warn_unread(list(read.values()).count(None), len(read), judged, notes)
        notes.warn(sum(cut.values()), len(cut), "memories were cut to fit the reranker's window")
        return judged


def ask_listwise(chat: Chat, pools: Pools, asked: dict[int, tuple[Prompt, int]],
                 read: Callable[[Completion, int], list[float] | None], store: Store, notes: Notes) -> Judged:
    """Send one prompt per pool and read the scores in the replies; note the unreadable ones and the cut memories."""
    replies = store.completions(chat, [prompt for prompt, _ in asked.values()], notes)
    judged: Judged = {q: read(reply, len(pools[q][1])) for q, reply in zip(asked, replies)}
    _warn_unread(list(judged.values()).count(None), len(judged), judged, notes)
    notes.warn(sum(cut for _, cut in asked.values()), sum(len(texts) for _, texts in pools.values()),
               "memories were cut to fit the reranker's window")
    return judged


def _warn_unread(unread: int, replies: int, judged: Judged, notes: Notes) -> None:
    kept = list(judged.values()).count(None)
    notes.warn(unread, replies, f"replies of the reranker could not be read; {kept:,} of {len(judged):,} questions "
               "keep the first stage's order")
