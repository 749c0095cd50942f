"""Signal: units of other sessions than the best unit's."""

from __future__ import annotations

import polars as pl

from memlab.rank.signals import Classes, flagged, placed
from memlab.stage import stage
from memlab.tables import Tables


@stage
class CrossSession:
    """1 for units of another session than the question's first-ranked unit, else 0.

    MemoryStack boosts "cross-session" memories (x1.35) for questions over several sessions; that these are the memories
    outside the leading session is our reading.
    """

    name: str = "cross_session"
    classes: Classes = ()

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        units = placed(tables)
        first = tables["ranking"].filter(pl.col("rank") == pl.col("rank").min().over("question")).select(
            "question", "unit").join(units, on=["question", "unit"]).select("question", pl.col("session").alias("best"))
        others = units.join(first, on="question").filter(pl.col("session") != pl.col("best"))
        return flagged(tables, others, self.classes)
