"""The part of a live memory's tables that a filter has left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memlab.models.protocols import Ints
from memlab.tables import Tables

MEMORIES = ("memories",)


@dataclass(frozen=True, eq=False)
class Part:
    """What is left of the tables of a live memory.

    whole: The tables of the memory. tables: What is left of them.
    rows: The rows that are left of each table of sessions, turns and memories in the whole, (n,), ascending.
    """

    whole: Tables
    tables: Tables
    rows: Mapping[str, Ints]

    def fits(self, searched: Tables, names: Sequence[str] = MEMORIES) -> bool:
        """Return whether tables are those of the part: a stage may have changed them, or nothing may be left."""
        return len(self.rows["memories"]) > 0 and searched.digest(names) == self.tables.digest(names)

    def numbers(self, name: str = "memories") -> Ints:
        """Return the row of each row of a table of the whole among those that are left, (m,), -1 for one that is not.
        """
        numbers = np.full(self.whole[name].height, -1, np.int64)
        numbers[self.rows[name]] = np.arange(len(self.rows[name]))
        return numbers
