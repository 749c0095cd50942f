"""Signal: the importance that a memory was given when it was written."""

from __future__ import annotations

import polars as pl

from memlab.rank.signals.helpers import PAIR, on_units
from memlab.stage import stage
from memlab.tables import Tables


@stage
class Importance:
    """The highest importance among a unit's memories; no value if none has one."""

    name: str = "importance"

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        importance = tables["memories"].select("memory", "importance")
        return on_units(tables).join(importance, on="memory").group_by(PAIR, maintain_order=True).agg(
            pl.col("importance").max().alias("value"))
