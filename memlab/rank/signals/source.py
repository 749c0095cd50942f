"""Where a memory comes from, and how far that is to be believed."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from memlab.rank.signals.units import PAIR, on_units
from memlab.stage import stage
from memlab.tables import Tables


@stage
class Source:
    """The highest authority among the sources of a unit's memories; sources that are not named have 0.

    Gimli's session versus memory source: a document that somebody has written down comes before talk. ``user`` and
    ``assistant`` are sources too, where an extractor has told who said it.
    """

    name: str = "source"
    authority: dict[str, Annotated[float, Field(ge=0, le=1)]] = Field(default_factory=lambda: {"document": 1.0})

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        known = pl.DataFrame({"source": list(self.authority), "value": list(self.authority.values())},
                             schema={"source": pl.String, "value": pl.Float64})
        sources = tables["memories"].select("memory", "source").join(known, on="source", how="left")
        held = on_units(tables).join(sources, on="memory").group_by(PAIR).agg(pl.col("value").max())
        return tables["ranking"].select(PAIR).join(held, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("value").fill_null(0.0))
