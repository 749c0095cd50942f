"""The selected units in the order of time."""

from __future__ import annotations

from typing import ClassVar

from memlab.read.pack import PACK_READS, PACK_WRITES, TIME, MaxTokens, chosen, in_order, within
from memlab.read.render import Value
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage
class ByDate:
    """Show the selected units as they were said, the oldest first, so that "then" and "now" need no searching.

    Rank decides what is shown (with ``max_tokens`` as in ``ByRank``), time only in which order.
    """

    reads: ClassVar = PACK_READS
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    max_tokens: MaxTokens = None

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs."""
        return in_order(within(chosen(tables, self.value), self.max_tokens), TIME, tables)
