"""Contrasts of whole recall-token curves: heights per question, which are tested as any other metric."""

from __future__ import annotations

from typing import TypedDict

import polars as pl

from memlab.evaluate.answer_words import ANSWER_WORDS
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.curves import (
    BY_CLASS,
    CONSTANT,
    METRIC,
    RULE,
    SMALLEST_K,
    Curve,
    as_curve,
    shared_range,
    value_column,
)

Range = tuple[float, float]
NAMES = (CONSTANT, BY_CLASS)

METRICS = (value_column("turn"), value_column("session"), ANSWER_WORDS)
"""What a curve may show, the finest first."""


def is_curve(metric: str) -> bool:
    """Return whether a metric's name asks for a comparison of whole curves."""
    return metric.startswith(METRIC)


def curve_metric(curve: pl.DataFrame) -> str:
    """Return the name of the finest comparison that an arm's curve allows."""
    return METRIC + next(c for c in METRICS if c in curve.columns)


class RulePoint(TypedDict):
    """One setting of a rule's knob: its mean tokens, and the mean of a metric of ``METRICS``."""

    tokens: float
    value: float


def mean_points(curve: pl.DataFrame) -> dict[str, list[RulePoint]]:
    """Return metric -> the rule's mean points by tokens, over the questions that count."""
    rows = curve.filter(pl.col("rule") == RULE)
    metrics = [c for c in reversed(METRICS) if c in rows.columns]
    means = rows.group_by("point").agg(pl.col("tokens").mean(), pl.col(metrics).drop_nans().mean()).sort("tokens")
    return {metric: [{"tokens": tokens, "value": value} for tokens, value in means.select("tokens", metric).iter_rows()
                     if value is not None] for metric in metrics}


def with_heights(contrast: Contrast, questions: pl.DataFrame, curve: pl.DataFrame | None,
                 other: pl.DataFrame | None) -> tuple[pl.DataFrame, pl.DataFrame, Range] | None:
    """Return both sides' questions with the column of the contrast's metric, and the range of tokens compared.

    ``curve`` is that of the arm, ``other`` that of the comparator, or None for constant K on the arm's own ranking. The
    range is the contrast's, cut to what both curves cover; by default from the tokens of K = 3 to those of the largest
    constant K. None where there is no such curve, or nothing in common.
    """
    metric = contrast.metric.removeprefix(METRIC)
    if curve is None or metric not in curve.columns or (other is not None and metric not in other.columns):
        return None
    if other is None and curve.filter(pl.col("rule") == contrast.comparator).is_empty():
        return None
    defined = curve.filter(pl.col("rule") == CONSTANT, pl.col("point") == 0).drop_nulls(metric).drop_nans(metric)
    rows = questions.join(defined.select("question"), on="question", how="semi").sort("question")
    listed = rows["question"].to_list()

    def drawn(frame: pl.DataFrame, rule: str) -> Curve:
        return as_curve(frame.filter(pl.col("rule") == rule), metric, listed)

    rule, constant = drawn(curve, RULE), drawn(curve, CONSTANT)
    against = drawn(curve, contrast.comparator) if other is None else drawn(other, RULE)
    low, high = shared_range((rule, against))
    asked = contrast.tokens or (float(constant.tokens[SMALLEST_K - 1].mean()), constant.span()[1])
    low, high = max(low, asked[0]), min(high, asked[1])
    if low >= high:
        return None
    one, two = (rows.with_columns(pl.Series(contrast.metric, side.heights(low, high))) for side in (rule, against))
    return one, two, (low, high)
