"""The number of tokens of each ranked unit, so that selection can count what it costs."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.read.render import RENDER_READS, Value, render_units
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.token_counter import count_tokens


@stage
class TokenCost:
    """Add ``tokens`` to the ranking: the length of the text that the unit shows, null below ``depth``.

    A unit without a text (an unknown document of a foreign run) costs 0.
    """

    reads: ClassVar = (*RENDER_READS, "ranking")
    writes: ClassVar = ("ranking",)
    value: Value = "unit"  # unit | turn | round | session
    depth: Annotated[int, Field(ge=1)] = 200  # ranks that are measured; no selection goes deeper

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with the column ``tokens`` (Float64)."""
        ranking = tables["ranking"].drop("tokens", strict=False)
        near = pl.col("rank") <= self.depth
        units = tables["units"].join(ranking.filter(near).select("unit").unique(), on="unit", how="semi")
        costs = render_units(units, tables, self.value).select("unit", count_tokens(pl.col("text")).alias("tokens"))
        tokens = pl.when(near).then(pl.col("tokens").fill_null(0)).cast(pl.Float64).alias("tokens")
        return Tables(ranking=ranking.join(costs, on="unit", how="left", maintain_order="left").with_columns(tokens))
