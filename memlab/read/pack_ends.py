"""The best units where readers look: at the beginning and at the end."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from memlab.read.pack import PACK_READS, PACK_WRITES, MaxTokens, chosen, in_order, within
from memlab.read.render import Value
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage
class BestAtEnds:
    """Show the best unit first, the second best last, the third second, and so on: the weakest lie in the middle.

    Readers overlook what stands in the middle of a long context (Liu et al., Lost in the Middle, TACL 2024). Rank
    decides what is shown (with ``max_tokens`` as in ``ByRank``).
    """

    reads: ClassVar = PACK_READS
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    max_tokens: MaxTokens = None

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs."""
        rows = within(chosen(tables, self.value), self.max_tokens)
        nth = pl.int_range(pl.len()).over("question")
        # even places fill the front from the left, odd ones the back from the right
        place = pl.when(nth % 2 == 0).then(nth).otherwise(2 * pl.len().over("question") - nth).alias("place")
        return in_order(rows.with_columns(place), ["place"], tables)
