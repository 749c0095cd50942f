"""Signal: how recently a unit was said."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Literal

import polars as pl
from pydantic import Field, model_validator

from memlab.rank.signals.helpers import PAIR, Classes, placed, questions_of
from memlab.stage import stage
from memlab.tables import Tables


@stage
class Recency:
    """Higher for younger units, by the age in whole days:

    * ``exp``: exp(-age / days). MemoryStack's, with days 30 (it calls 30 a half-life; it is the time constant).
    * ``linear``: 1 - age / days. Gimli's, with days 180 and ``lowest`` .5.

    ``inverted`` gives 1 - value, so that the factor 0 multiplies a score by the value. Units without a date have no
    value, nor have questions of other than the named ``classes``. With ``clock: wall``, as in systems that take the
    time of their own run, age counts back from the day ``now``; what was said later has age 0.
    """

    name: str = "recency"
    form: Literal["exp", "linear"] = "exp"  # exp: exp(-age / days) | linear: 1 - age / days
    days: Annotated[float, Field(gt=0)] = 30.0
    lowest: float = 0.0  # no value is lower
    inverted: bool = False  # 1 - value, for a factor of 0
    clock: Literal["question", "wall"] = "question"  # age on the question's day | on the day now
    now: Annotated[date, Field(strict=False)] | None = None
    classes: Classes = ()  # none: for all questions

    @model_validator(mode="after")
    def _now_is_told(self) -> Recency:
        if (self.clock == "wall") != (self.now is not None):
            raise ValueError("clock: wall needs now, the day that counts as today (now: 2026-01-01); "
                             "clock: question has none")
        return self

    def values(self, tables: Tables) -> pl.DataFrame:
        """Return (question, unit, value)."""
        today = tables["questions"].select("question", pl.col("asked_on").dt.date().alias("now"))
        rows = placed(tables).join(today, on="question", how="left", maintain_order="left")
        now = pl.col("now") if self.now is None else pl.lit(self.now)
        age = (now - pl.col("said_on").dt.date()).dt.total_days().clip(lower_bound=0) / self.days
        value = ((-age).exp() if self.form == "exp" else 1 - age).clip(lower_bound=self.lowest)
        ours = rows.join(questions_of(tables, self.classes), on="question", how="semi", maintain_order="left")
        return ours.select(*PAIR, (1 - value if self.inverted else value).alias("value"))
