"""The part of a live memory's tables that a filter has left."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from memlab.models.protocols import Ints
from memlab.tables import Tables

MEMORIES = ("memories",)


@dataclass(frozen=True, eq=False)
class Part:
    """What is left of the tables of a live memory.

    whole: The tables of the memory. tables: What is left of them.
    rows: (n,) the row in the whole table ``memories`` of each memory that is left, ascending.
    """

    whole: Tables
    tables: Tables
    rows: Ints

    def numbers(self, searched: Tables) -> Ints | None:
        """Return the row of each memory of the whole among those that are left, (m,), -1 for one that is not.

        None if nothing is left, or if a stage has changed the memories, so that ``searched`` has others.
        """
        if not len(self.rows) or searched.digest(MEMORIES) != self.tables.digest(MEMORIES):
            return None
        numbers = np.full(self.whole["memories"].height, -1, np.int64)
        numbers[self.rows] = np.arange(len(self.rows))
        return numbers
