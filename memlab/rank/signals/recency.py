"""How long ago a unit was said."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.rank.signals.helpers import PAIR, Classes, asked_as, placed
from memlab.stage import stage
from memlab.tables import Tables


@stage
class Recency:
    """Younger units have the higher value, told by the age in whole days:

    * ``exp``: exp(-age / days). MemoryStack's, with days 30 (it calls 30 a half-life; it is the time constant).
    * ``linear``: 1 - age / days. Gimli's, with days 180 and ``lowest`` .5.

    No value is under ``lowest``; ``inverted`` gives 1 - value, the share that an old unit loses by the factor 0, so
    that its score is multiplied by the value. Where ``classes`` are named, questions of others have no value.

    ``clock`` tells from when age counts: the day of the question, or for faithfulness to systems that take the time
    of their own run, the fixed day ``now``, by which all that a benchmark holds is old. What was said later than that
    has the age 0; without a date there is no value.
    """

    name: str = "recency"
    form: Literal["exp", "linear"] = "exp"  # exp: exp(-age / days) | linear: 1 - age / days
    days: Annotated[float, Field(gt=0)] = 30.0  # called a half-life there; it is the time constant
    lowest: float = 0.0  # no value is lower
    inverted: bool = False  # 1 - value, for a factor of 0
    clock: Literal["question", "wall"] = "question"  # question: age on the question's day | wall: age on the day now
    now: Annotated[date, Field(strict=False)] | None = None
    classes: Classes = ()  # only for questions of these classes; none: for all

    @model_validator(mode="after")
    def _now_is_told(self) -> Recency:
        if (self.clock == "wall") != (self.now is not None):
            raise ValueError("clock: wall needs now, the day that counts as today (now: 2026-01-01); "
                             "clock: question has none")
        return self

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        asked = tables["questions"].select("question", pl.col("asked_on").dt.date().alias("now"))
        rows = placed(tables).join(asked, on="question", how="left", maintain_order="left")
        now = pl.col("now") if self.now is None else pl.lit(self.now)
        age = (now - pl.col("said_on").dt.date()).dt.total_days().clip(lower_bound=0) / self.days
        value = ((-age).exp() if self.form == "exp" else 1 - age).clip(lower_bound=self.lowest)
        ours = rows.join(asked_as(tables, self.classes), on="question", how="semi", maintain_order="left")
        return ours.select(*PAIR, (1 - value if self.inverted else value).alias("value"))
