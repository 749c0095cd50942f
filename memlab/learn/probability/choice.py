"""Choice of the kind of value on the training folds: the curve that is higher there decides."""

from __future__ import annotations

import numpy as np
import polars as pl

from memlab.learn.labels import smallest_k
from memlab.learn.probability.threshold import VALUES, Value, prices, with_always, with_shown_from, with_value
from memlab.tables import DIGITS

REACH = (0.5, 4.0)
"""Budgets that count in the choice, as multiples of the budget that is asked for."""


def height(rows: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame, tokens: float) -> float:
    """Return the mean share of questions with all evidence shown, over budgets evenly spaced in their logarithm.

    ``rows`` (question, unit, rank, shown_from) tell from which mean tokens a unit is shown; the budgets go from
    ``REACH[0]`` to ``REACH[1]`` times ``tokens``. ``evidence`` is that of the questions that count.
    """
    shown = rows.drop_nulls("shown_from").with_columns(pl.col("shown_from").alias("rank"))
    needed = smallest_k(shown, units, evidence, "turn")["complete"].fill_null(np.inf).to_numpy()
    low, high = (factor * tokens for factor in REACH)
    share = np.log(high / needed.clip(low, high)) / np.log(high / low)
    return float(share.mean()) if len(share) else 0.0


def chosen_value(rows: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame, tokens: float, min_k: int) -> Value:
    """Return the kind of value whose ``height`` is greatest on these rows; the simplest if equal.

    ``rows`` are (question, unit, rank, tokens, probability) of the training folds, estimated by models that have not
    seen them.
    """
    own = evidence.join(rows.select("question").unique(), on="question", how="semi")

    def reached(value: Value) -> float:
        ready = with_always(with_value(rows, value), min_k)
        return round(height(with_shown_from(ready, prices(ready)), units, own, tokens), DIGITS)

    return max(VALUES, key=reached)  # the first of equal ones
