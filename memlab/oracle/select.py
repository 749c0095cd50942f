"""Upper bounds of adaptive K, which look at gold: the most that any rule could gain."""

from __future__ import annotations

from typing import ClassVar

import polars as pl
from pydantic import Field

from memlab.learn.labels import EvidenceLevel, smallest_k
from memlab.rank.select import Count, cut
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage
class OracleSelect:
    """Select the smallest K that holds all evidence of the first ``max_k`` units.

    No rule that shows the top of this ranking has a higher recall at ``max_k``, or the same with fewer units. A
    question without evidence in reach is shown one unit.
    """

    reads: ClassVar = ("ranking", "units", "evidence")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        reach = ranking.filter(pl.col("rank") <= self.max_k)
        needed = smallest_k(reach, tables["units"], tables["evidence"], self.level)
        k = ranking.select(pl.col("question").unique()).join(
            needed.select("question", pl.col("held").alias("k")), on="question", how="left")
        return cut(ranking, k.with_columns(pl.col("k").fill_null(1)))


@stage
class OracleTypeSelect:
    """Select K by the benchmark's own question type, as ``by_type`` would with a perfect classifier."""

    reads: ClassVar = ("ranking", "gold")
    writes: ClassVar = ("ranking",)

    k_by_category: dict[str, Count] = Field(default_factory=dict)
    otherwise: Count = 10

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``; a category without a K of its own takes ``otherwise``."""
        k = tables["gold"].select("question", pl.col("category").replace_strict(
            self.k_by_category, default=self.otherwise, return_dtype=pl.Int32).alias("k"))
        return cut(tables["ranking"], k)
