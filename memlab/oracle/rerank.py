"""Upper bound of reranking: the pool in perfect order."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.learn.labels import EvidenceLevel, first_holders
from memlab.rank.units import ranked
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage(sees=("gold",))
class OracleRerank:
    """Move the units that hold evidence to the front of the first ``pool``, as a perfect reranker would.

    Only the first unit that holds each item of evidence (``level``) moves, so that no item is crowded out by a second
    unit of another; all others keep their order, and scores keep their distances.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    pool: Annotated[int, Field(ge=1)] = 50
    level: EvidenceLevel = "session"  # what counts as an item of evidence: session or turn

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the reordered ranking."""
        ranking = tables["ranking"]
        pool = ranking.filter(pl.col("rank") <= self.pool)
        holders = first_holders(pool, tables["units"], tables["evidence"], self.level).drop_nulls("unit").select(
            "question", "unit").unique().with_columns(pl.lit(1.0).alias("holds"))
        span = (pl.col("score").max() - pl.col("score").min()).over("question") + 1
        lifted = ranking.join(holders, on=["question", "unit"], how="left", maintain_order="left").with_columns(
            pl.col("score") + pl.col("holds").fill_null(0.0) * span).drop("holds")
        return Tables(ranking=ranked(lifted))
