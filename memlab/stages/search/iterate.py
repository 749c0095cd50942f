"""Iterative search for questions that gather many items: ask, look at what was found, ask for what is missing."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.models.chat.replies import MARGIN, parse_json, trim
from memlab.models.protocols import Chat, Message, Prompt
from memlab.pipeline.question_types import FALLBACK, check_classes, first_of
from memlab.pipeline.stage import Names, Stage, stage
from memlab.pipeline.tables import Notes, Tables, add_texts, frame, with_text
from memlab.pipeline.transcript import NOTE, fence_data, mark_for
from memlab.stages.search.hits import HitsBuilder, first_queries, reciprocal_ranks
from memlab.store import Store
from memlab.support.text.display import printable_line

_SYSTEM = """You search a person's past conversations to gather everything that a question asks for: every item of a \
count, every part of a list or a sum, both sides of a comparison. First think of the items that may exist, also those \
that the question does not name; then write one short search phrase for each item that nothing found so far covers, \
{most} at most. A phrase must be understood without the question. If what was found seems complete, reply with an \
empty list. Reply as JSON: {{"queries": ["...", "..."]}}."""
SCHEMA = json.dumps({"type": "object", "properties": {"queries": {"type": "array", "items": {"type": "string"}}},
                     "required": ["queries"], "additionalProperties": False})
_REPLY = 192
"""Tokens of a reply: six phrases in JSON."""

Scores = dict[int, dict[int, float]]
"""Question -> memory -> score."""


@stage
class Iterate:
    """Hits of search phrases that a chat model writes in rounds, for evidence that is not found yet.

    Each round shows the model the question, the phrases so far and the best ``shown`` memories, and asks for phrases
    for items that are still missing. The ``searches`` (those of search/dense and search/lexical) look for each phrase.
    A memory scores the sum of 1 / (60 + rank) over the searches, for the phrase that gives it most; the first
    ``per_phrase`` hits of a search count, and none with a score of 0. A question ends when the
    model asks for nothing new, when its reply cannot be read (which is counted), or after ``rounds``.

    Lanes are named ``<name>:<kind>``, and belong to the first query of a question. Questions of other classes than
    ``classes`` (query/classify) have no hits here.
    """

    reads: ClassVar = ("hits", "queries", "questions", "memories", "texts", "classes")
    writes: ClassVar = ("hits",)

    chat: Chat
    searches: Annotated[tuple[Stage, ...], Field(strict=False, min_length=1)]
    classes: Names = ("counting", "multi_session")  # empty: all questions
    rounds: Annotated[int, Field(ge=1, le=5)] = 2  # one reply each
    most: Annotated[int, Field(ge=1)] = 6  # phrases per round
    shown: Annotated[int, Field(ge=1)] = 10  # memories that the model is shown in each round
    max_chars: Annotated[int, Field(ge=1)] = 300  # of each memory that is shown
    per_phrase: Annotated[int, Field(ge=1)] = 10  # first hits of each search that count for a phrase
    depth: Annotated[int, Field(ge=1)] = 100  # hits per question
    name: str = "iterate"  # lanes are named iterate:<kind>

    def __post_init__(self) -> None:
        check_classes({f"search.iterate.classes[{i}]": name for i, name in enumerate(self.classes)})

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the hits of all phrases of every question."""
        notes = Notes()
        found: Scores = {question: {} for question in tables["queries"]["question"].unique()}
        for question, memory, score in reciprocal_ranks(tables["hits"].filter(pl.col("score") != 0), tables["queries"]
                                                        ).iter_rows():
            found[question][memory] = score
        total: Scores = defaultdict(dict)
        asked: dict[int, list[str]] = {question: [] for question in self._choose(tables)}
        open_questions = list(asked)
        for _ in range(self.rounds):
            new = self._ask(tables, store, open_questions, asked, found, notes)
            open_questions = list(new)
            if not new:
                break
            for question, memories in self._search(tables, store, new, notes).items():
                asked[question] += new[question]
                for memory, score in memories.items():
                    total[question][memory] = max(score, total[question].get(memory, 0.0))
                    found[question][memory] = max(score, found[question].get(memory, 0.0))
        kinds, first = dict(tables["memories"].select("memory", "kind").iter_rows()), first_queries(tables["queries"])
        hits = HitsBuilder()
        for question, scores in sorted(total.items()):
            hits.add_by_kind(self.name, first[question], scores, kinds, self.depth)
        return Tables(hits=hits.frame(), notes=notes.table())

    def _choose(self, tables: Tables) -> list[int]:
        """Return the questions of the classes."""
        classes = first_of(tables["classes"])
        kinds = {question: classes.get(question, "") for question in tables["queries"]["question"].unique().sort()}
        return [question for question, kind in kinds.items()
                if not self.classes or kind in self.classes or FALLBACK.get(kind) in self.classes]

    def _ask(self, tables: Tables, store: Store, questions: list[int], asked: dict[int, list[str]], found: Scores,
             notes: Notes) -> dict[int, list[str]]:
        """Return the new phrases of each question that has any."""
        texts = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
        memories = tables["memories"].select("memory", "value_id", "said_on")
        best = {question: [memory for memory, _ in sorted(found[question].items(), key=lambda row: (-row[1], row[0]))
                           ][: self.shown] for question in questions}
        wanted = memories.filter(pl.col("memory").is_in({m for own in best.values() for m in own}))
        lines = {memory: f"[{day:%Y-%m-%d}] {text}" if day else text
                 for memory, day, text in with_text(wanted, tables["texts"], "value_id").select(
                     "memory", "said_on", pl.col("text").str.head(self.max_chars)).iter_rows()}
        prompts = [self._prompt(texts[q], asked[q], [lines[m] for m in best[q]]) for q in questions]
        replies = [parse_json(reply, SCHEMA) for reply in store.completions(self.chat, prompts, notes)]
        notes.warn(replies.count(None), len(replies), "requests for missing items could not be read; those questions "
                   "are searched no further")
        new: dict[int, list[str]] = {}
        for question, reply in zip(questions, replies):
            known = {texts[question].casefold(), *(phrase.casefold() for phrase in asked[question])}
            phrases = dict.fromkeys(map(printable_line, reply["queries"] if reply else ()))
            if fresh := [phrase for phrase in phrases if phrase and phrase.casefold() not in known][: self.most]:
                new[question] = fresh
        return new

    def _prompt(self, question: str, asked: list[str], shown: list[str]) -> Prompt:
        system = f"{_SYSTEM.format(most=self.most)}\n{NOTE}"
        searched = "\n".join(f"- {words}" for words in asked or [question])
        parts = {"QUESTION": question, "SEARCHED": searched, "FOUND": ""}
        found = "\n".join(f"- {line}" for line in shown) or "(nothing)"
        mark = mark_for([*parts.values(), found])
        room = self.chat.window - _REPLY - MARGIN - self.chat.count(system) - self.chat.count(fence_data(parts, mark))
        user = fence_data(parts | {"FOUND": trim(self.chat, found, room)}, mark)
        return Prompt((Message("system", system), Message("user", user)), schema=SCHEMA, max_tokens=_REPLY)

    def _search(self, tables: Tables, store: Store, phrases: dict[int, list[str]], notes: Notes) -> Scores:
        """Return the scores of the memories that these phrases find."""
        rows = [(question, phrase) for question, own in phrases.items() for phrase in own]
        ids, texts = add_texts(tables["texts"], [phrase for _, phrase in rows])
        queries = frame("queries", {"query": range(len(rows)), "question": [question for question, _ in rows],
                                    "kind": ["sub"] * len(rows), "text_id": ids, "weight": [1.0] * len(rows)})
        inputs = tables.updated({"queries": queries, "texts": texts})
        hits = [notes.include(search.run(inputs.only(search.reads), store))["hits"] for search in self.searches]
        scores: Scores = {}
        matches = pl.concat(hits).filter(pl.col("rank") <= self.per_phrase, pl.col("score") != 0)
        for question, memory, score in reciprocal_ranks(matches, queries, ["question", "query", "memory"]).group_by(
                "question", "memory").agg(pl.col("score").max()).sort("question", "memory").iter_rows():
            scores.setdefault(question, {})[memory] = score
        return scores
