"""Signal: edges to other memories."""

from __future__ import annotations

from typing import Annotated, Literal

import polars as pl
from pydantic import Field

from memlab.rank.signals.helpers import PAIR, on_units
from memlab.stage import stage
from memlab.tables import Tables, as_of

Kind = Literal["FOLLOWS", "RELATED_TO", "SAME_TOPIC", "ELABORATES", "CONTRADICTS", "SUPERSEDES"]


def _weights() -> dict[Kind, float]:
    return {"FOLLOWS": 0.2, "RELATED_TO": 0.5, "SAME_TOPIC": 0.5, "ELABORATES": 0.6, "CONTRADICTS": 0.3,
            "SUPERSEDES": 0.8}


@stage
class Relation:
    """Sum over a unit's edges of type weight x confidence: MemoryStack's relation score, which has no bound.

    Its type weights are not published; the defaults are ours. An edge counts for both its ends, SUPERSEDES for the
    newer one alone; edges within a unit, and kinds without a weight, do not count. Both ends must have been said by the
    day of the question. ``among: pool`` counts edges to units among the question's ``first`` ranks, ``all`` any edge.
    """

    name: str = "relation"
    weights: dict[Kind, float] = Field(default_factory=_weights)  # not published; ours
    among: Literal["pool", "all"] = "pool"
    first: Annotated[int, Field(ge=1)] = 30

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value); 0 for a unit without edges."""
        weighed = pl.DataFrame({"kind": list(self.weights), "weight": list(self.weights.values())},
                               schema={"kind": pl.String, "weight": pl.Float64})
        edges = tables["edges"].join(weighed, on="kind").select(
            "source", "target", "kind", (pl.col("weight") * pl.col("confidence")).alias("worth"))
        ends = pl.concat([edges.select(memory="source", other="target", worth="worth"),
                          edges.filter(pl.col("kind") != "SUPERSEDES").select(memory="target", other="source",
                                                                               worth="worth")])
        members = on_units(tables)
        dates = tables["memories"].select(pl.col("memory").alias("other"), "said_on")
        today = tables["questions"].select("question", "asked_on")
        reached = members.join(ends, on="memory").join(dates, on="other").join(today, on="question").filter(as_of())
        inside = members.select(*PAIR, pl.col("memory").alias("other"))
        reached = reached.join(inside, on=[*PAIR, "other"], how="anti")
        if self.among == "pool":
            pool = tables["ranking"].filter(pl.col("rank") <= self.first).select(PAIR)
            reached = reached.join(inside.join(pool, on=PAIR), on=["question", "other"], how="semi")
        # added in one order, so that the same edges give the same bits
        total = reached.sort(*PAIR, "memory", "other", "worth").group_by(PAIR, maintain_order=True).agg(
            pl.col("worth").sum().alias("value"))
        return tables["ranking"].select(PAIR).join(total, on=PAIR, how="left", maintain_order="left").with_columns(
            pl.col("value").fill_null(0.0))
