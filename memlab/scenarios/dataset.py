"""The scenarios as a benchmark: for each case a haystack with a few relevant memories, and a question.

Gimli's eight scenarios (exact match, semantic equivalence, technical term, cross-chunk context, temporal
disambiguation, session against memory source, low relevance, multi-concept) and memlab's own (updates, counting,
time, abstention). Expectations are in ``CASES`` and in no table, so no stage can read them; ``python -m
memlab.scenarios.report`` checks finished runs against them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import Field

from memlab.data.build import Builder
from memlab.data.groups import GroupBy
from memlab.data.subset import Subset, known_types
from memlab.scenarios.cases import CASES, CATEGORIES, Piece, Scenario
from memlab.scenarios.distractors import Haystack, HaystackTurn
from memlab.stage import stage
from memlab.tables import Tables

ASKED_ON = datetime(2024, 6, 14, 10, 0)  # a Friday; questions about "April" or "two weeks ago" are worded for it
_DAYS = 360  # a haystack spans about a year and ends on the day before the question
_FILES = 0.15  # share of the haystack sessions that are memory files


@stage
class Scenarios(Subset):
    """One corpus per case: its memories, its decoys, and ``haystack`` unrelated sessions.

    A memory file is a session whose paragraphs are turns, with the file's name as speaker. A relevant turn is named
    "case#piece" in the table ids.
    """

    seed: Annotated[int, Field(ge=0)] = 0  # another seed is another haystack around the same cases
    # unrelated sessions of 4 turns per case: about 120 turns with the case, all of which run folders keep
    haystack: Annotated[int, Field(ge=0)] = 24

    def __post_init__(self) -> None:
        known_types(self.types, CATEGORIES)

    @property
    def name(self) -> str:
        """``scenarios``, or ``scenarios-pooled``."""
        return self.sized_name("scenarios")

    def load(self) -> Tables:
        """Build every case with its haystack."""
        build = Builder()
        for number, scenario in enumerate(CASES.values()):
            self._case(build, number, scenario)
        return self.cut(build.tables())

    def _case(self, build: Builder, number: int, scenario: Scenario) -> None:
        build.corpus(corpus=number, name=scenario.name)
        build.question(question=number, corpus=number, text=scenario.question, asked_on=ASKED_ON, name=scenario.name,
                       answer=scenario.answer, category=scenario.category,
                       abstain=not any(piece.evidence for piece in scenario.pieces),
                       scored=any(piece.evidence for piece in scenario.pieces))
        evidence = {piece.name for piece in scenario.pieces if piece.evidence}
        for session, (day, turns) in enumerate(self._sessions(number, scenario)):
            path = turns[0].speaker
            build.session(corpus=number, session=session, said_on=day, name=path or f"session {session}")
            for at, turn in enumerate(turns):
                name = f"{session}:{at}" if turn.piece is None else f"{scenario.name}#{turn.piece}"
                build.turn(corpus=number, session=session, turn=at, role=turn.role, speaker=turn.speaker,
                           text=turn.text, name=name)
                if turn.piece in evidence:
                    build.evidence(question=number, session=session, turn=at)

    def _sessions(self, number: int, scenario: Scenario) -> list[tuple[datetime, list[HaystackTurn]]]:
        """Return (day, turns) of every session, in the order of their days."""
        chats = [piece for piece in scenario.pieces if piece.file is None]
        hay = Haystack((self.seed, number), max(self.haystack + len(chats) + len(scenario.decoys), 1))

        def random_moment() -> datetime:
            return self._moment(hay, int(hay.random.integers(1, _DAYS)))

        files: dict[str, list[Piece]] = {}
        for piece in scenario.pieces:
            files.setdefault(piece.file or "", []).append(piece)
        out = [(self._moment(hay, piece.days), hay.chat((piece.text, piece.name))) for piece in chats]
        out += [(self._moment(hay, pieces[0].days), hay.file(path, [(piece.text, piece.name) for piece in pieces]))
                for path, pieces in files.items() if path]
        out += [(random_moment(), hay.chat((decoy, None))) for decoy in scenario.decoys]
        for _ in range(self.haystack):
            out.append((random_moment(), hay.file(hay.path()) if hay.random.random() < _FILES else hay.chat()))
        return sorted(out, key=lambda session: session[0])

    def _moment(self, hay: Haystack, days: int) -> datetime:
        return (ASKED_ON - timedelta(days=days)).replace(hour=int(hay.random.integers(7, 23)),
                                                         minute=int(hay.random.integers(60)))

    def identity(self) -> dict[str, Any]:
        """Return all options; cases and generator are covered by the digest of the source."""
        return {"benchmark": "scenarios", "seed": self.seed, "haystack": self.haystack, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["A demonstration of how systems behave: three cases per scenario are too few for a test. The "
                "expectations are Gimli's and ours, the wording is ours.", *super().notes()]

    def grouping(self) -> GroupBy:
        """Group the questions that share evidence when pooled; else each has a corpus of its own."""
        return "evidence" if self.pool else "question"
