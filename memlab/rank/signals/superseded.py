"""Signal: units that were still current on the day of the question."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from memlab.rank.signals.helpers import PAIR, flagged, on_units
from memlab.stage import Names, stage
from memlab.tables import Tables, as_of


@stage
class Current:
    """1 for units that nothing had superseded by the day of the question, else 0: ``floors: {current: 1}`` filters.

    A memory is superseded from the day ``valid_to`` on, or from the day on which the source of an edge SUPERSEDES of at
    least ``least_confidence`` was said. A unit is superseded if every memory of this unit alone is: one old statement
    does not end a session, nor does a session memory keep an old turn. With ``classes``, units of others have 1.
    """

    name: str = "current"
    classes: Names = ()
    least_confidence: Annotated[float, Field(ge=0, le=1)] = 0.0

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        dates = tables["memories"].select("memory", pl.col("said_on").alias("end"))
        ends = pl.concat([
            tables["memories"].select("memory", pl.col("valid_to").alias("end")).drop_nulls("end"),
            tables["edges"].filter(pl.col("kind") == "SUPERSEDES", pl.col("confidence") >= self.least_confidence)
            .join(dates, left_on="source", right_on="memory").select(pl.col("target").alias("memory"), "end"),
        ]).group_by("memory").agg(pl.col("end").min(), pl.lit(True).alias("ended"))
        size = pl.col("turns").list.len()
        covered = (on_units(tables)
                   .join(tables["memories"].select("memory", size.alias("memory_turns")), on="memory")
                   .join(tables["units"].select("unit", size.alias("unit_turns")), on="unit")
                   .join(tables["questions"].select("question", "asked_on"), on="question")
                   .join(ends, on="memory", how="left"))
        over = pl.col("ended").fill_null(False) & as_of("end")
        own = pl.col("memory_turns") <= pl.col("unit_turns")
        superseded = covered.with_columns(over.alias("over"), own.alias("own")).group_by(PAIR).agg(
            pl.when(pl.col("own").any()).then((pl.col("over") | ~pl.col("own")).all())
            .otherwise(pl.col("over").all()).alias("superseded")).filter("superseded")
        gone = flagged(tables, superseded, self.classes)
        return gone.with_columns((1.0 - pl.col("value")).alias("value"))
