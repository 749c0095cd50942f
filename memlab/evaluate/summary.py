"""An arm's figures with their intervals.

Where questions come in groups that are not independent, the interval is that of the mean over groups; else Wilson's for
shares, that is 0/1 metrics, and BCa for graded ones and for amounts (tokens, K), whatever their values.
"""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import polars as pl

from memlab.evaluate.answers import judge_columns
from memlab.evaluate.averages import COSTS, averaged_name, macro_averages, mean, views
from memlab.evaluate.grouped_mean import grouped_mean
from memlab.evaluate.intervals import Interval, bca, wilson
from memlab.evaluate.per_question import metric_names

HEADLINE = (
    "session/recall_any@1", "session/recall_all@5", "session/recall_all@10", "session/recall@10", "session/ndcg@10",
    "turn/recall_all@10", "turn/recall@10", "turn/ndcg@10", "selected/session/recall_all", "selected/turn/recall_all",
    "context/tokens",
)
"""Metrics that are shown by type and compared between arms beside the declared ones."""

MEAN_RESAMPLES = 1_999
"""For intervals of single means, of which a report has hundreds; contrasts draw 9,999."""


class Estimate(TypedDict):
    """A mean with its 95 % interval over ``n`` questions; bounds are None where no interval is defined."""

    value: float
    low: float | None
    high: float | None
    n: int


def headline(columns: list[str]) -> list[str]:
    """Return the metrics of a frame that are shown by type and compared: the judges' first, then ``HEADLINE``.

    >>> headline(["question", "session/ndcg@10", "answer/f1"])
    ['answer/f1', 'session/ndcg@10']
    """
    return [*judge_columns(columns), *(m for m in HEADLINE if m in columns)]


def summary(questions: pl.DataFrame, seed: int = 0) -> dict[str, Estimate]:
    """Return the estimates of an arm, with the names of metrics.json.

    All metrics over all questions; the ``headline`` ones also by type and without label errors. Macro averages have no
    interval.
    """
    estimates: dict[str, Estimate] = {}
    shown = headline(questions.columns)
    for prefix, rows in views(questions):
        names = [m for m in metric_names(questions) if not prefix or m in shown]
        for metric, (value, interval, n) in intervals(rows, names, seed).items():
            low, high = interval if interval else (None, None)
            estimates[prefix + averaged_name(metric)] = {"value": value, "low": low, "high": high, "n": n}
    for name, (value, n) in macro_averages(questions).items():
        estimates[name] = {"value": value, "low": None, "high": None, "n": n}
    return estimates


def intervals(rows: pl.DataFrame, metrics: list[str], seed: int) -> dict[str, tuple[float, Interval, int]]:
    """Return metric -> (mean, interval, questions that define it); metrics that no question defines are left out."""
    results: dict[str, tuple[float, Interval, int]] = {}
    graded: dict[bytes, list[str]] = {}  # columns defined for the same questions share their resamples
    for metric in metrics:
        kept = rows[metric].drop_nulls()
        value = mean(kept)
        if value is None:
            continue
        values, interval = kept.to_numpy(), None
        groups = rows.filter(pl.col(metric).is_not_null())["group"]
        if groups.is_duplicated().any():
            interval = grouped_mean(values, groups.to_numpy()).interval()
            if interval:  # a mean of shares or amounts has bounds that a t-interval does not know
                interval = max(0.0, interval[0]), interval[1] if metric in COSTS else min(1.0, interval[1])
        elif metric not in COSTS and is_binary(values):
            interval = wilson(int(values.sum()), len(values))
        else:
            graded.setdefault(rows[metric].is_not_null().to_numpy().tobytes(), []).append(metric)
        results[metric] = (value, interval, len(values))
    for group in graded.values():
        block = rows.select(group).drop_nulls().to_numpy()
        for metric, interval in zip(group, bca(block, seed, MEAN_RESAMPLES)):
            results[metric] = (results[metric][0], interval, results[metric][2])
    return {metric: results[metric] for metric in metrics if metric in results}


def is_binary(values: np.ndarray) -> bool:
    """Return whether all values are 0 or 1."""
    return bool(np.isin(values, (0.0, 1.0)).all())
