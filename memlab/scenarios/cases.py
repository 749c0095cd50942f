"""Relevance scenarios, three cases each: Gimli's eight with its own expectations, and memlab's four."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

from memlab.runtime.foreign import load_yaml


@dataclass(frozen=True)
class Piece:
    """One relevant memory: said by the user in a chat or, with ``file``, a paragraph of a memory file.

    ``days`` counts back from the day of the question. Pieces of one file keep their order and are far apart in it.
    """

    name: str
    text: str
    days: int
    file: str | None = None
    evidence: bool = True


@dataclass(frozen=True)
class Expect:
    """An expectation about the units that contain some ``pieces``; reported, never required.

    * ``rank``: the unit of the piece is among the first ``bound``;
    * ``score``: its score is above ``bound``;
    * ``vector``: the vector part of its score is larger than the keyword part;
    * ``text``: its keyword score is above ``bound``;
    * ``near``: the scores of two pieces are less than ``bound`` apart;
    * ``before``: the first piece ranks before the second;
    * ``returned``: every piece is returned (selected);
    * ``nothing``: nothing is returned.
    """

    kind: Literal["rank", "score", "vector", "text", "near", "before", "returned", "nothing"]
    pieces: tuple[str, ...] = ()
    bound: float = 0.0

    @property
    def label(self) -> str:
        """The expectation in words.

        >>> Expect("rank", ("it",), 3).label, Expect("before", ("new", "old")).label
        ('in the top 3', 'new before old')
        """
        pieces = " and ".join(self.pieces) if len(self.pieces) <= 2 else "all"
        return {"rank": f"in the top {self.bound:g}", "score": f"score > {self.bound:g}",
                "vector": "vector share largest", "text": f"text score > {self.bound:g}",
                "near": f"scores within {self.bound:g}", "before": " before ".join(self.pieces),
                "returned": f"{pieces} returned", "nothing": "nothing returned"}[self.kind]


@dataclass(frozen=True)
class Scenario:
    """One case of a scenario: ``category`` names the scenario, ``case`` the case within it.

    Decoys resemble the pieces without answering the question; the user says them on random days. Without a piece of
    evidence the right answer is to decline.
    """

    category: str
    case: str
    question: str
    answer: str
    pieces: tuple[Piece, ...] = ()
    decoys: tuple[str, ...] = ()
    expect: tuple[Expect, ...] = ()

    @property
    def name(self) -> str:
        """The question's own id, ``category:case``."""
        return f"{self.category}:{self.case}"


def read_cases() -> Iterator[Scenario]:
    """Yield the cases of ``cases.yaml``; an expectation without pieces is one about all of a case."""
    for category, scenario in load_yaml(files("memlab.scenarios").joinpath("cases.yaml").read_text("utf-8")).items():
        expect = [Expect(e["kind"], tuple(e.get("pieces", ())), e.get("bound", 0.0)) for e in scenario["expect"]]
        for case, fields in scenario["cases"].items():
            pieces = tuple(Piece(name, **piece) for name, piece in fields.get("pieces", {}).items())
            names = tuple(piece.name for piece in pieces)
            expected = tuple(replace(e, pieces=e.pieces or names) for e in expect)
            yield Scenario(category, case, fields["question"], fields["answer"], pieces,
                           tuple(fields.get("decoys", ())), expected)


CASES: dict[str, Scenario] = {scenario.name: scenario for scenario in read_cases()}
"""Every case by its name; its position is the number of its corpus and of its question."""

CATEGORIES = tuple(dict.fromkeys(scenario.category for scenario in CASES.values()))
