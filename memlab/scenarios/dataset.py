"""Relevance scenarios: a few memories that matter in a haystack, a question, and what a good search would do with it.

Gimli's eight (exact match, semantic equivalence, technical term, cross-chunk context, temporal disambiguation, session
against memory source, low relevance, multi-concept) and memlab's own (updates, counting, time, abstention). What is
expected lies in ``CASES``, as data of this module: no table holds it, so no stage can read it.
``python -m memlab.scenarios.report`` holds finished runs against it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from memlab.data import subset
from memlab.data.build import Builder
from memlab.scenarios.cases import GIMLI, OWN
from memlab.scenarios.distractors import Haystack, Said
from memlab.scenarios.schema import Expect as Expect
from memlab.scenarios.schema import Piece
from memlab.scenarios.schema import Scenario as Scenario
from memlab.stage import Names, stage
from memlab.tables import Tables

CASES: dict[str, Scenario] = {scenario.name: scenario for scenario in (*GIMLI, *OWN)}
"""Every case by its name; the order decides the number of its corpus and of its question."""

CATEGORIES = tuple(dict.fromkeys(scenario.category for scenario in CASES.values()))
ASKED_ON = datetime(2024, 6, 14, 10, 0)  # a Friday; questions about "April" or "two weeks ago" are worded for it
_DAYS = 360  # a haystack spans about a year, the question's own day excluded
_FILES = 0.15  # share of a haystack that is memory files


@stage
class Scenarios:
    """A corpus a case: its memories, its decoys, and ``haystack`` sessions that have nothing to do with it.

    A memory file is a session whose paragraphs are turns, spoken by the file's name. A turn that matters is called
    "case#piece" in the table ids.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    haystack: Annotated[int, Field(ge=0)] = 24
    limit: Annotated[int, Field(ge=1)] | None = None
    sample: Annotated[int, Field(ge=1)] | None = None
    types: Names | None = None
    split: Literal["a", "b"] | None = None
    pool: bool = False

    def __post_init__(self) -> None:
        subset.known_types(self.types, CATEGORIES)

    @property
    def name(self) -> str:
        """``scenarios``, or ``scenarios-pooled``."""
        return "scenarios-pooled" if self.pool else "scenarios"

    def load(self) -> Tables:
        """Build every case's haystack around it."""
        build = Builder()
        for number, scenario in enumerate(CASES.values()):
            self._case(build, number, scenario)
        return subset.cut(build.tables(), limit=self.limit, sample=self.sample, types=self.types,
                          split=self.split, pool=self.pool)

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
            for turn, said in enumerate(turns):
                name = f"{session}:{turn}" if said.piece is None else f"{scenario.name}#{said.piece}"
                build.turn(corpus=number, session=session, turn=turn, role=said.role, speaker=said.speaker,
                           text=said.text, name=name)
                if said.piece in evidence:
                    build.evidence(question=number, session=session, turn=turn)

    def _sessions(self, number: int, scenario: Scenario) -> list[tuple[datetime, list[Said]]]:
        """Return (day, turns) of every session, in the order of their days."""
        said = [piece for piece in scenario.pieces if piece.file is None]
        hay = Haystack((self.seed, number), max(self.haystack + len(said) + len(scenario.decoys), 1))

        def drawn() -> datetime:
            return self._moment(hay, int(hay.random.integers(1, _DAYS)))

        files: dict[str, list[Piece]] = {}
        for piece in scenario.pieces:
            files.setdefault(piece.file or "", []).append(piece)
        out = [(self._moment(hay, piece.days), hay.chat((piece.text, piece.name))) for piece in said]
        out += [(self._moment(hay, held[0].days), hay.file(path, [(piece.text, piece.name) for piece in held]))
                for path, held in files.items() if path]
        out += [(drawn(), hay.chat((decoy, None))) for decoy in scenario.decoys]
        for _ in range(self.haystack):
            out.append((drawn(), hay.file(hay.path()) if hay.random.random() < _FILES else hay.chat()))
        return sorted(out, key=lambda session: session[0])

    def _moment(self, hay: Haystack, days: int) -> datetime:
        return (ASKED_ON - timedelta(days=days)).replace(hour=int(hay.random.integers(7, 23)),
                                                         minute=int(hay.random.integers(60)))

    def identity(self) -> dict[str, Any]:
        """Every knob; cases and generator count through the digest of the source."""
        return {"benchmark": "scenarios", "seed": self.seed, "haystack": self.haystack, **subset.options(self)}

    def notes(self) -> list[str]:
        """What a reader of the results must know."""
        return ["A demonstration of how systems behave, three cases a scenario: the expectations are Gimli's and ours, "
                "and so is the wording; too few for a test.", *subset.notes(self)]

    def clusters(self) -> bool:
        """Every question has a corpus of its own."""
        return self.pool
