"""K by an estimated probability: as few units as make complete evidence likely enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.rank.select import Count, cut, need
from memlab.stage import stage
from memlab.tables import Tables

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Calibrated:
    """Select the smallest K whose estimated probability of complete evidence reaches ``target``.

    The probability is the ranking's column ``coverage`` (learn/coverage). Where no K up to ``max_k`` reaches the
    target, ``max_k`` units are shown and the column ``unreachable`` is 1 instead of 0. The estimate is as good as
    its reliability curve; nothing is guaranteed.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    target: Annotated[float, Field(gt=0, lt=1)] = 0.9
    min_k: Count = 1
    max_k: Count = 40

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected`` and ``unreachable``."""
        ranking = tables["ranking"]
        need(ranking, "coverage", "choose rank/select=calibrated with learn/coverage=crossfit or loaded")
        if not ranking.height:
            return Tables(ranking=ranking)
        reached = ranking.filter(pl.col("coverage") >= self.target, pl.col("rank") <= self.max_k)
        k = ranking.select(pl.col("question").unique()).join(
            reached.group_by("question").agg(pl.col("rank").min().clip(lower_bound=self.min_k).alias("k")),
            on="question", how="left")
        missed = k.select("question", pl.col("k").is_null().cast(pl.Float64).alias("unreachable"))
        chosen = cut(ranking, k.with_columns(pl.col("k").fill_null(self.max_k)))["ranking"]
        return Tables(ranking=chosen.join(missed, on="question", how="left", maintain_order="left"))
