"""One threshold for all questions: the value of each unit, and the mean tokens from which a threshold shows it.

With a given mean number of tokens per question, most evidence is expected where all units are shown whose probability
per token exceeds one threshold, the same for every question: a knapsack filled by value per weight.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np
import polars as pl
from pydantic import model_validator

from memlab.learn.fits import Numbers, Values
from memlab.pipeline.stage import stage

Value = Literal["unit", "token", "share"]

VALUES: tuple[Value, ...] = ("unit", "token", "share")
"""Kinds of value: the probability p; p / tokens; and p / tokens / max(1, sum of p over the question's units). With the
last, a question's expected recall counts in place of its expected number of evidence units."""

ROWS = 400
"""Rows of a table of prices."""

@stage
class Prices:
    """Mean tokens per question at which a threshold shows a unit: ``thresholds`` never rise, ``tokens`` never fall."""

    thresholds: Numbers
    tokens: Numbers

    @model_validator(mode="after")
    def _is_a_table(self) -> Prices:
        if not 0 < len(self.thresholds) == len(self.tokens):
            raise ValueError("thresholds and tokens need one number for each row")
        if not np.isfinite(self.thresholds + self.tokens).all():
            raise ValueError("thresholds and tokens must be finite")
        if min(self.thresholds) <= 0:
            raise ValueError("thresholds must be above 0")
        if any(a < b for a, b in pairwise(self.thresholds)) or any(a > b for a, b in pairwise(self.tokens)):
            raise ValueError("thresholds must not rise, and tokens must not fall")
        return self

    def shown_from(self, value: Values) -> Values:
        """Return the mean tokens from which units of these values (n,) are shown, linear in the log of the value."""
        log = np.log(np.maximum(value, 1e-300))
        return np.asarray(np.interp(-log, -np.log(self.thresholds), self.tokens))


def with_value(rows: pl.DataFrame, value: Value) -> pl.DataFrame:
    """Add ``value`` to rows with question, probability and tokens; null where one of the two is."""
    p, tokens = pl.col("probability"), pl.when(pl.col("tokens").is_not_null()).then(pl.max_horizontal("tokens", 1.0))
    if value == "unit":
        return rows.with_columns(pl.when(tokens.is_not_null()).then(p).alias("value"))
    expected = pl.max_horizontal(p.sum().over("question"), 1.0) if value == "share" else 1.0
    return rows.with_columns((p / tokens / expected).alias("value"))


def with_always(rows: pl.DataFrame, min_k: int) -> pl.DataFrame:
    """Add ``always``: true for the ``min_k`` units of highest ``value`` of each question; the higher rank if equal."""
    order = pl.struct(-pl.col("value").fill_null(-1.0), "rank").rank("ordinal").over("question")
    return rows.with_columns(((order <= min_k) & pl.col("value").is_not_null()).alias("always"))


def prices(rows: pl.DataFrame) -> Prices:
    """Return what each threshold costs, for rows (question, tokens, value, always): the mean over these questions.

    The rows of the table are evenly spaced in the log of the tokens.
    """
    rows = rows.drop_nulls("value").filter(pl.col("value") > 0)
    questions = max(rows["question"].n_unique(), 1)
    given = float(rows.filter("always")["tokens"].sum())
    others = rows.filter(~pl.col("always")).sort("value", "tokens", descending=[True, False])
    if not others.height:
        return Prices(thresholds=(1.0,), tokens=(given / questions,))
    total = (given + np.cumsum(others["tokens"].to_numpy())) / questions
    marks = np.geomspace(max(total[0], 1.0), max(total[-1], 1.0), ROWS)
    kept = np.unique(np.append(np.searchsorted(total, marks).clip(0, len(total) - 1), [0, len(total) - 1]))
    return Prices(thresholds=tuple(others["value"].to_numpy()[kept].tolist()), tokens=tuple(total[kept].tolist()))


def with_shown_from(rows: pl.DataFrame, table: Prices) -> pl.DataFrame:
    """Add ``shown_from`` to rows with ``value`` and ``always``: mean tokens; 0 if always, null without a value."""
    costs = pl.Series(table.shown_from(rows["value"].fill_null(0.0).to_numpy()), dtype=pl.Float64)
    return rows.with_columns(pl.when("always").then(0.0).when(pl.col("value").is_not_null()).then(costs)
                             .alias("shown_from"))
