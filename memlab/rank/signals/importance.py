"""How important what is remembered was held to be when it was written."""

from __future__ import annotations

import polars as pl

from memlab.rank.signals.helpers import PAIR, on_units
from memlab.stage import stage
from memlab.tables import Tables


@stage
class Importance:
    """The highest importance among the memories that a unit stands for; no value where none has one."""

    name: str = "importance"

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        told = tables["memories"].select("memory", "importance")
        return on_units(tables).join(told, on="memory").group_by(PAIR, maintain_order=True).agg(
            pl.col("importance").max().alias("value"))
