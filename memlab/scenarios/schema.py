"""What a scenario is made of: the memories that matter, a question, and what a good search would do with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

What = Literal["rank", "score", "vector", "text", "near", "before", "returned", "nothing"]


@dataclass(frozen=True)
class Piece:
    """One thing that was said, by the user in a chat or, with ``file``, as a paragraph of a memory file.

    ``days`` counts back from the day of the question. Pieces of one file stand in it in their order, far apart.
    """

    name: str
    text: str
    days: int
    file: str | None = None
    evidence: bool = True


@dataclass(frozen=True)
class Expect:
    """What is expected of the units that hold some pieces; reported, never required.

    * ``rank``: the unit of the piece is among the first ``bound``;
    * ``score``: its score is above ``bound``;
    * ``vector``: the vectors' share of it is larger than the keywords';
    * ``text``: its keyword score is above ``bound``;
    * ``near``: the scores of two pieces are less than ``bound`` apart;
    * ``before``: the first piece ranks before the second;
    * ``returned``: every piece is among what is returned (selected);
    * ``nothing``: nothing is returned.
    """

    what: What
    of: tuple[str, ...] = ()
    bound: float = 0.0

    def words(self) -> str:
        """Say it in words.

        >>> Expect("rank", ("it",), 3).words(), Expect("before", ("new", "old")).words()
        ('in the top 3', 'new before old')
        """
        both = " and ".join(self.of) if len(self.of) <= 2 else "all"
        return {"rank": f"in the top {self.bound:g}", "score": f"score > {self.bound:g}",
                "vector": "vector share largest", "text": f"text score > {self.bound:g}",
                "near": f"scores within {self.bound:g}", "before": " before ".join(self.of),
                "returned": f"{both} returned", "nothing": "nothing returned"}[self.what]


@dataclass(frozen=True)
class Scenario:
    """One case of a scenario: ``category`` names the scenario, ``case`` tells its cases apart.

    Decoys resemble the pieces without answering the question; they are said by the user on days drawn by the seed.
    Without a piece of evidence the right answer is to decline.
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
        """``category:case``, the question's own id."""
        return f"{self.category}:{self.case}"
