"""A boost for units that were said in the time that a question names; no unit is dropped for its date."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.rank.units import ranked
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables


@stage
class Forward:
    """Move the units dated within the window of one of their question's queries forward.

    Questions without a window, or without a unit in it, keep their ranking and scores. A memory is dated by
    ``happened_on`` if it is known, else like turns and sessions by the session's day.
    """

    reads: ClassVar = ("ranking", "units", "queries", "sessions", "memories")
    writes: ClassVar = ("ranking",)

    tolerance_days: Annotated[int, Field(ge=0)] = 2  # widens windows: events are often mentioned a day or two later
    # added to scores inside, in standard deviations of the question's scores; null: they come before all others
    strength: Annotated[float, Field(gt=0)] | None = 1.0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking, reordered; its columns stay."""
        ranking = tables["ranking"]
        inside = self._inside(tables)
        if inside.is_empty():
            return Tables(ranking=ranking)
        touched = ranking.join(inside.select("question").unique(), on="question", how="semi").join(
            inside.with_columns(pl.lit(True).alias("inside")), on=["question", "unit"], how="left",
            maintain_order="left")
        score = pl.col("score")
        step = (score.max() - score.min() + 1.0 if self.strength is None else self.strength * score.std(ddof=0)).over(
            "question")
        moved = ranked(touched.with_columns(
            pl.when("inside").then(score + step).otherwise(score).alias("score")).drop("inside"))
        rest = ranking.join(inside, on="question", how="anti")
        return Tables(ranking=pl.concat([rest, moved.select(rest.columns)]).sort("question", "rank"))

    def _inside(self, tables: Tables) -> pl.DataFrame:
        """Return the pairs (question, unit) of ranked units that lie in a window."""
        slack = pl.duration(days=self.tolerance_days)
        windows = tables["queries"].filter(pl.col("window").is_not_null()).select(
            "question", (pl.col("window").list.first().dt.date() - slack).alias("start"),
            (pl.col("window").list.last().dt.date() + slack).alias("end"))
        if windows.is_empty():
            return pl.DataFrame(schema={"question": pl.Int32, "unit": pl.Int64})
        units = tables["units"].select("unit", *SESSION, "level").join(
            tables["sessions"].select(*SESSION, "said_on"), on=SESSION, how="left")
        own = tables["memories"].select(pl.col("memory").alias("unit"), pl.lit("memory").alias("level"), "happened_on")
        days = units.join(own, on=["unit", "level"], how="left").select(
            "unit", pl.coalesce("happened_on", "said_on").dt.date().alias("day"))
        return (
            tables["ranking"].select("question", "unit").join(windows, on="question").join(days, on="unit")
            .filter(pl.col("day").is_between("start", "end"))
            .select("question", "unit").unique(maintain_order=True)
        )
