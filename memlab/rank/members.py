"""The units that memories stand for, which a live memory keeps from question to question."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl

from memlab.models.protocols import Ints
from memlab.tables import Tables

Project = Callable[[pl.DataFrame, Tables], tuple[pl.DataFrame, pl.DataFrame]]
"""Some memories, and all tables -> all units of a level, and the pairs (memory, unit) of these memories."""

FROM = ("memories", "turns", "sessions")
"""Tables from which units are made."""


@dataclass(frozen=True, eq=False)
class Members:
    """All units of a level, and those of each memory of some kinds.

    memories: (n,) ids, ascending. begins: (n + 1,) where the units of each start in numbers. numbers: (m,) of units.
    """

    units: pl.DataFrame
    memories: Ints
    begins: Ints
    numbers: Ints

    @classmethod
    def of(cls, units: pl.DataFrame, pairs: pl.DataFrame) -> Members:
        """Take the pairs (memory, unit), in any order."""
        ordered = pairs.sort("memory", "unit")
        memories, lengths = np.unique(ordered["memory"].to_numpy(), return_counts=True)
        return cls(units, memories, np.concatenate([[0], np.cumsum(lengths)]), ordered["unit"].to_numpy())

    def by_unit(self, hits: pl.DataFrame) -> pl.DataFrame:
        """Return the hits, which have ``memory``, with ``unit``: a row for each unit of each hit, as an inner join."""
        asked = hits["memory"].to_numpy()
        first, end = (np.searchsorted(self.memories, asked, side) for side in ("left", "right"))  # equal without units
        begins, lengths = self.begins[first], self.begins[end] - self.begins[first]
        ends = np.cumsum(lengths)
        numbers = self.numbers[np.arange(lengths.sum()) + np.repeat(begins - ends + lengths, lengths)]
        return hits[np.repeat(np.arange(len(asked)), lengths)].with_columns(pl.Series("unit", numbers))


class KeptMembers:
    """The members of the latest tables, by level and kinds. Searches may run side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables = ""  # their digest
        self._memories: Ints = np.empty(0, np.int64)
        self._kinds = pl.Series("kind", [], pl.String)  # of each memory
        self._members: dict[tuple[str, tuple[str, ...]], Members] = {}

    def members(self, level: str, project: Project, hit: pl.Series, tables: Tables) -> Members:
        """Return the units of a level, and those of all memories of the kinds of some (their ids), made once."""
        digest = tables.digest(FROM)
        with self._lock:
            if digest != self._tables:
                memories = tables["memories"].sort("memory")
                self._memories, self._kinds = memories["memory"].to_numpy(), memories["kind"].cast(pl.Categorical)
                self._tables, self._members = digest, {}
            of_hits = self._kinds.filter(np.isin(self._memories, hit.to_numpy()))
            kinds = tuple(sorted(of_hits.unique().cast(pl.String)))
            if (level, kinds) not in self._members:
                some = tables["memories"].filter(pl.col("kind").is_in(kinds))
                self._members[level, kinds] = Members.of(*project(some, tables))
            return self._members[level, kinds]

    def forget_other_texts(self, ids: pl.Series) -> None:  # noqa: ARG002  (all that is kept is made again)
        """Forget the members."""
        with self._lock:
            self._tables, self._members = "", {}
