"""The scenarios as a benchmark: for each case a haystack with a few relevant memories, and a question.

Gimli's eight scenarios (exact match, semantic equivalence, technical term, cross-chunk context, temporal
disambiguation, session against memory source, low relevance, multi-concept) and memlab's own (updates, counting,
time, abstention). Expectations are in ``CASES`` and in no table, so no stage can read them; ``memlab
experiment scenarios`` checks finished runs against them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple, TypeVar

import numpy as np
from pydantic import Field

from memlab.data.benchmarks import Builder
from memlab.data.dataset import GroupBy
from memlab.data.readers import sha256
from memlab.data.subset import Subset, known_types
from memlab.data.synthetic import lexicon
from memlab.data.synthetic.dataset import Knobs, Life, chats
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.support.foreign import read_yaml
from scenarios.cases import CASES, CATEGORIES, EXAMPLES, FOLDER, Piece, Scenario

T = TypeVar("T")
ROUNDS = 2  # per chat, each a user turn and a reply
NOTES = 12  # notes between two pieces of one file: more than a chunk of 400 tokens

WORDS: dict[str, list[str]] = read_yaml(FOLDER / "haystack.yaml")
"""Words and templates of sessions that are unrelated to a question."""


class HaystackTurn(NamedTuple):
    """One turn: ``speaker`` is a file's name or, in a chat, None; ``piece`` is the name of its piece, if any."""

    role: str
    speaker: str | None
    text: str
    piece: str | None = None


class Haystack:
    """A seeded source of sessions that are unrelated to the question."""

    def __init__(self, seed: Sequence[int], sessions: int) -> None:
        self.random = np.random.default_rng(seed)
        life = Life(seed, sessions, Knobs(0.0, 0.0, (2, 2)))
        self._small = iter(chats(life)[0])

    def pick(self, options: Sequence[T]) -> T:
        """Draw an option."""
        return options[int(self.random.integers(len(options)))]

    def chat(self, piece: tuple[str, str | None] | None = None) -> list[HaystackTurn]:
        """Return a chat about work or everyday life; a piece (text, name) takes the place of one user turn."""
        small = next(self._small)
        rounds = [(small[2 * i], small[2 * i + 1]) for i in range(ROUNDS)]
        if self.random.random() < 0.5:
            rounds = [(self._work("user"), self._work("reply")) for _ in range(ROUNDS)]
        turns = [HaystackTurn(role, None, text) for pair in rounds for role, text in zip(("user", "assistant"), pair)]
        if piece is not None:
            at = 2 * int(self.random.integers(ROUNDS))
            turns[at] = HaystackTurn("user", None, *piece)
            turns[at + 1] = HaystackTurn("assistant", None, self.pick(WORDS["acknowledgement"]))
        return turns

    def file(self, path: str, pieces: Sequence[tuple[str, str]] = ()) -> list[HaystackTurn]:
        """Return a memory file, one turn per paragraph: notes, and the pieces (text, name) with many notes between."""
        turns = [self._note(path) for _ in range(2)]
        for number, (text, name) in enumerate(pieces):
            turns += [self._note(path) for _ in range(NOTES * (number > 0))]
            turns.append(HaystackTurn("user", path, text, name))
        return [*turns, self._note(path), self._note(path)]

    def path(self) -> str:
        """Draw a name for a file of notes."""
        return f"memory/{self.pick(WORDS['service'])}-{self.pick(WORDS['group']).lower()}.md"

    def _note(self, path: str) -> HaystackTurn:
        return HaystackTurn("user", path, self._work("note"))

    def _work(self, kind: str) -> str:
        who, other = (lexicon.NAMES[int(i)] for i in self.random.choice(len(lexicon.NAMES), 2, replace=False))
        return self.pick(WORDS[kind]).format(
            **{name: self.pick(WORDS[name]) for name in ("service", "tool", "task")}, who=who, other=other,
            number=int(self.random.integers(3, 19)))


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
    # true: in place of the cases the eight examples of Gimli's write-up, with its further checks
    examples: bool = False

    def __post_init__(self) -> None:
        known_types(self.types, CATEGORIES)

    @property
    def name(self) -> str:
        """``scenarios``, or ``scenarios-pooled``, or ``scenarios-examples``."""
        return self.sized_name("scenarios-examples" if self.examples else "scenarios")

    def load(self) -> Tables:
        """Build every case with its haystack."""
        build = Builder()
        for number, scenario in enumerate((EXAMPLES if self.examples else CASES).values()):
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
        """Return all options and the checksums of the texts; the generator is covered by the digest of the source."""
        texts = ("examples.yaml" if self.examples else "cases.yaml", "haystack.yaml")
        return {"benchmark": "scenarios", "seed": self.seed, "haystack": self.haystack, **self.options(),
                **{file: sha256(FOLDER / file) for file in texts},
                **({"examples": True} if self.examples else {})}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["A demonstration of how systems behave: three cases per scenario are too few for a test. The "
                "expectations are Gimli's and ours, the wording is ours.", *super().notes()]

    def grouping(self) -> GroupBy:
        """Group the questions that share evidence when pooled; else each has a corpus of its own."""
        return "evidence" if self.pool else "question"
