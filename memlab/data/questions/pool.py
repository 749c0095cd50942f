"""Candidate pools: the turns that vector search finds for a question, added to those that its words find.

Spärck Jones and van Rijsbergen, "Report on the need for and provision of an 'ideal' information retrieval test
collection" (1975): what no system finds within the depth is never judged, and counts as no evidence.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from queue import SimpleQueue
from typing import NamedTuple

import polars as pl

from memlab.data.benchmarks import Builder
from memlab.data.jsonl import SessionLine
from memlab.data.questions.log import TurnPlace
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.store import Store
from memlab.support.errors import error_message


class Asked(NamedTuple):
    """A question and the corpus that it is asked of."""

    corpus: str
    text: str


def systems() -> dict[str, Pipeline]:
    """Return the systems that are pooled with search by words: vectors, and vectors with words."""
    return {"vectors": Pipeline(lexical=EmptyStage(writes=("hits",))), "both": Pipeline()}


def pool(sessions: Sequence[SessionLine], questions: Sequence[Asked], pipelines: Mapping[str, Pipeline],
         store: Store, depth: int) -> list[list[TurnPlace]]:
    """Return the turns that the systems find for each question, in the order of the log: no system's ranking shows.

    depth: number of turns taken from each system's ranking.
    """
    build = Builder()
    corpora = {name: i for i, name in enumerate(dict.fromkeys(s.corpus for s in sessions))}
    numbers: dict[str, list[int]] = {name: [] for name in corpora}
    for n, session in enumerate(sessions):
        corpus, number = corpora[session.corpus], len(numbers[session.corpus])
        numbers[session.corpus].append(n)
        build.session(corpus=corpus, session=number, said_on=session.said_on, name=session.session)
        for t, turn in enumerate(session.turns):
            build.turn(corpus=corpus, session=number, turn=t, role=turn.role, speaker=turn.speaker, text=turn.text,
                       name=f"{session.session}:{t}")
    for q, question in enumerate(questions):
        build.question(question=q, corpus=corpora[question.corpus], text=question.text, asked_on=None, name=str(q),
                       answer=None, category="all", abstain=False, scored=False)
    tables = build.tables()
    found: list[set[TurnPlace]] = [set() for _ in questions]
    for pipeline in pipelines.values():
        ran = pipeline.run(tables, store)
        units = ran["units"].select("unit", "session", "turns")
        for q, session_number, turn_number in _first_turns(ran["ranking"].join(units, on="unit"), depth):
            found[q].add(TurnPlace(numbers[questions[q].corpus][session_number], turn_number))
    return [sorted(places) for places in found]


def _first_turns(ranking: pl.DataFrame, depth: int) -> Iterable[tuple[int, int, int]]:
    """Return (question, session, turn) of the first ``depth`` turns of each question."""
    turns = ranking.sort("question", "rank").explode("turns").unique(
        ["question", "session", "turns"], keep="first", maintain_order=True)
    return turns.group_by("question", maintain_order=True).head(depth).select("question", "session", "turns").rows()


class Pools:
    """The pools of questions, looked for in a thread: vectors of a long log take minutes when they are made first."""

    def __init__(self, sessions: Sequence[SessionLine], pipelines: Mapping[str, Pipeline], store: Store,
                 depth: int) -> None:
        self._sessions, self._pipelines, self._store, self.depth = sessions, pipelines, store, depth
        self._found: dict[Asked, list[TurnPlace]] = {}
        self._queue = SimpleQueue[list[Asked]]()
        self.waiting = 0
        """Batches of questions that are not answered yet."""
        self.fault = ""
        """Why a search failed."""
        threading.Thread(target=self._work, daemon=True).start()

    def ask(self, questions: Iterable[Asked]) -> None:
        """Look for the pools of questions, after those that were asked for before."""
        if batch := [question for question in dict.fromkeys(questions) if question not in self._found]:
            self.waiting += 1
            self._queue.put(batch)

    def of(self, question: Asked) -> list[TurnPlace]:
        """Return the pool of a question; empty where it is not known yet."""
        return self._found.get(question, [])

    def _work(self) -> None:
        while True:
            batch = self._queue.get()
            try:
                self._found.update(zip(batch, pool(self._sessions, batch, self._pipelines, self._store, self.depth)))
            except KeyboardInterrupt:  # polars raises it in the thread that it works in; the main one ends the command
                return
            except Exception as error:  # of a model: the page goes on without it, and shows why
                self.fault = error_message(error)
            self.waiting -= 1
