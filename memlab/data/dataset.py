"""Protocol of data sets."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from memlab.data.groups import GroupBy
from memlab.tables import Tables


@runtime_checkable
class Dataset(Protocol):
    """Sessions, questions and gold, numbered by integers without meaning.

    Corpora, questions, sessions and turns keep their numbers when only a part is kept (limit, types, split), so numbers
    may have gaps, and the same question has the same number in every arm.
    """

    @property
    def name(self) -> str:
        """A short name for folders, such as ``locomo`` or ``longmemeval_s-pooled``."""
        ...

    def load(self) -> Tables:
        """Return texts, sessions, turns, questions, gold, evidence and ids, each sorted by its integers."""
        ...

    def identity(self) -> dict[str, Any]:
        """Return all that decides what ``load`` returns: benchmark, checksums of its files, options; never a path."""
        ...

    def notes(self) -> list[str]:
        """Return what a reader of the results must know about these data."""
        ...

    def grouping(self) -> GroupBy:
        """Return which questions depend on one another, so that together they are one observation."""
        ...
