"""Recall-token curves: operating points of a selection rule, constant K, and contrasts of whole curves.

A rule has one knob. Each setting of it is a point: the tokens and the recall of every question. The curve runs straight
between the points' means, which is what a draw between two neighbouring settings gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import polars as pl

from memlab.evaluate.contrast import Contrast
from memlab.evaluate.evidence import Pieces, within
from memlab.evaluate.retrieval import Level, at_level, grain, holders, matrix, scored_evidence, unit_ranks
from memlab.evaluate.statistics import Values, mean
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

LARGEST_K = 50


class CurvePoint(TypedDict):
    """One K: mean tokens of the first K units before any packing, and the mean of a ``selected/...`` metric."""

    k: int
    tokens: float
    value: float | None


def constant_k(tables: Tables, largest: int = LARGEST_K) -> dict[str, list[CurvePoint]]:
    """Return metric -> points for K = 1 to ``largest`` on the table ``ranking``.

    Tokens (column ``tokens``) are averaged over all questions, values over the questions that count. Raises
    MemlabError where the ranking has no tokens.
    """
    ranking, questions = tables["ranking"], tables["questions"]["question"]
    if "tokens" not in ranking.columns:
        raise MemlabError("the ranking has no column tokens", where="constant-K curve", fix="run read/measure first")
    evidence = scored_evidence(tables)
    levels = ["session"] if grain(tables["units"]) == "session" else ["session", "turn"]
    ranks = {level: matrix(unit_ranks(ranking, tables["units"], evidence, level), questions)  # type: ignore[arg-type]
             for level in levels}
    by_rank = ranking.filter(pl.col("rank") <= largest).group_by("rank").agg(pl.col("tokens").sum()).sort("rank")
    tokens_at = dict(zip(by_rank["rank"], np.cumsum(by_rank["tokens"].to_numpy()) / max(len(questions), 1)))
    curve: dict[str, list[CurvePoint]] = {}
    tokens = 0.0
    for k in range(1, largest + 1):
        tokens = float(tokens_at.get(k, tokens))
        for level in levels:
            for name, values in within(ranks[level], k, f"selected/{level}").items():
                value = mean(values[~np.isnan(values)])
                curve.setdefault(name, []).append({"k": k, "tokens": tokens, "value": value})
    return curve


METRIC = "curve/"
"""Prefix of a contrast's metric that compares whole curves, such as ``curve/selected/turn/recall_all``."""

CONSTANT, BY_CLASS = "constant", "constant_by_class"
"""Comparators of a curve contrast: one K for all, and the best K for each class of question, on the arm's ranking."""

RULE = "rule"
"""The arm's own rule, beside these two."""

SMALLEST_K, PRICES, FOLDS = 3, 60, 5


@dataclass(frozen=True)
class Curve:
    """The operating points of one rule: tokens and values, each (points, questions)."""

    tokens: Values
    values: Values

    def span(self) -> tuple[float, float]:
        """Return the fewest and the most mean tokens."""
        means = self.tokens.mean(axis=1)
        return float(means.min()), float(means.max())

    def heights(self, low: float, high: float) -> Values:
        """Return one height per question, (questions,); their mean is the curve's mean height from low to high tokens.

        The curve is a function of the points' means. The height of a question is its influence on that function: with
        t and v the question's tokens and value between two points, T and V the means and s the slope V' / T', the
        average of v - s (t - T) over the range. So a test of the mean of such heights is a test of the area.
        Raises MemlabError where the curve does not reach from ``low`` to ``high``.
        """
        start, end = self.span()
        if not (start <= low + 1e-9 and high <= end + 1e-9 and low < high):
            raise MemlabError(f"the curve reaches from {start:.0f} to {end:.0f} tokens, not from {low:.0f} to "
                              f"{high:.0f}", where="recall-token curve", fix="compare a range that both curves cover")
        order = np.argsort(self.tokens.mean(axis=1), kind="stable")
        tokens, values = self.tokens[order], self.values[order]
        means, levels = tokens.mean(axis=1), values.mean(axis=1)
        total = np.zeros(tokens.shape[1])
        for i in np.flatnonzero(np.diff(means) > 1e-9):
            left, right = max(low, means[i]), min(high, means[i + 1])
            if left >= right:
                continue
            width = means[i + 1] - means[i]
            second = ((right - means[i]) ** 2 - (left - means[i]) ** 2) / (2 * width)
            first = right - left - second
            slope = (levels[i + 1] - levels[i]) / width
            drift = first * tokens[i] + second * tokens[i + 1] - (right**2 - left**2) / 2
            total += first * values[i] + second * values[i + 1] - slope * drift
        return total / (high - low)


def rule_points(rankings: Iterable[pl.DataFrame], tables: Tables) -> pl.DataFrame:
    """Return (question, point, tokens, ``selected/session/recall_all``, ``selected/turn/recall_all``).

    ``rankings`` mark what the rule selects at one setting after the other. Only questions that count are listed; turns
    only where the evidence turns are known.
    """
    return pl.concat([rows.with_columns(pl.lit(i, pl.Int32).alias("point"))
                      for i, rows in enumerate(_points(rankings, tables))])


def constant_rankings(ranking: pl.DataFrame, largest: int = LARGEST_K) -> Iterator[pl.DataFrame]:
    """Yield the ranking with the first k units selected, k = 1 to ``largest``."""
    for k in range(1, largest + 1):
        yield ranking.with_columns((pl.col("rank") <= k).alias("selected"))


def class_points(constant: pl.DataFrame, classes: Mapping[int, str], group_of: Mapping[int, int]) -> pl.DataFrame:
    """Return the points of the best constant K of each class of question, chosen on the other folds.

    For a price per token, a class gets the K with the highest mean recall less price x tokens; a falling price gives
    the points, and the largest K for all is the last. Each question gets the K that was chosen without the groups of
    its fold, so that this opponent knows no question's own label; a class that the other folds lack gets the K of all
    their questions. The recall of turns decides, or that of sessions without known turns.
    """
    questions = constant["question"].unique().sort().to_list()
    metric = next(c for c in (value_column("turn"), value_column("session")) if c in constant.columns)
    whole = as_curve(constant, metric, questions)
    kinds = np.array([classes.get(q, "") for q in questions])
    _, group = np.unique([group_of[q] for q in questions], return_inverse=True)
    fold, known = group % FOLDS, ~np.isnan(whole.values[0])
    recall, tokens = np.zeros((2, len(whole.tokens), len(questions)))  # of each K on the other folds, by question
    for part in np.unique(fold):
        others = (fold != part) & known
        for kind in np.unique(kinds[fold == part]):
            fitted = others & (kinds == kind)
            fitted = fitted if fitted.any() else others
            if fitted.any():
                chosen = (fold == part) & (kinds == kind)
                recall[:, chosen] = whole.values[:, fitted].mean(axis=1)[:, None]
                tokens[:, chosen] = whole.tokens[:, fitted].mean(axis=1)[:, None]
    picks = [(recall - price * tokens).argmax(axis=0) for price in np.geomspace(1e-1, 1e-6, PRICES)]
    picks.append(np.full(len(questions), len(whole.tokens) - 1))
    return pl.concat([
        pl.DataFrame({"question": questions, "point": k}, schema={"question": pl.Int32, "point": pl.Int32}).join(
            constant, on=["question", "point"], how="left").with_columns(
            pl.lit(i, pl.Int32).alias("point")).select(constant.columns) for i, k in enumerate(picks)])


def value_column(level: Level) -> str:
    """Return the column of a level's recall of all evidence."""
    return f"selected/{level}/recall_all"


def as_curve(points: pl.DataFrame, metric: str, questions: list[int]) -> Curve:
    """Return the curve of these questions, in their order."""
    rows = points.join(pl.DataFrame({"question": pl.Series(questions, dtype=pl.Int32)}).with_row_index("place"),
                       on="question").sort("point", "place")
    shape = (-1, len(questions))
    return Curve(rows["tokens"].to_numpy().astype(np.float64).reshape(shape),
                 rows[metric].to_numpy().astype(np.float64).reshape(shape))


def shared_range(curves: Iterable[Curve]) -> tuple[float, float]:
    """Return the range of mean tokens that all curves cover."""
    spans = [curve.span() for curve in curves]
    return max(low for low, _ in spans), min(high for _, high in spans)


def _points(rankings: Iterable[pl.DataFrame], tables: Tables) -> Iterator[pl.DataFrame]:
    evidence = scored_evidence(tables)
    questions = evidence["question"].unique().sort()
    place = pl.DataFrame({"question": questions}).with_row_index("place")
    rows = tables["ranking"].sort("question", "rank").join(place, on="question").sort("place", "rank")
    tokens, of_question = rows["tokens"].fill_null(0).to_numpy().astype(np.float64), rows["place"].to_numpy()
    levels: tuple[Level, ...] = ("session", "turn") if evidence["turn"].is_not_null().any() else ("session",)
    pieces = {level: _pieces(rows, place, tables["units"], evidence, level) for level in levels}
    for ranking in rankings:
        selected = ranking.join(place, on="question").sort("place", "rank")["selected"].to_numpy()
        yield pl.DataFrame({
            "question": questions, "tokens": np.bincount(of_question, tokens * selected, len(questions)),
            **{value_column(level): pieces[level].complete(selected) for level in levels}})


def _pieces(rows: pl.DataFrame, place: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
            level: Level) -> Pieces:
    wanted = at_level(evidence, level).sort("question", "session", "turn").with_row_index("piece")
    ranked = rows.select("question", "unit").with_row_index("row")
    held = holders(units, wanted.drop("piece")).join(
        wanted.select("question", "session", "turn", "piece"), on=["question", "session", "turn"],
        nulls_equal=True).join(ranked, on=["question", "unit"])
    of_piece = wanted.select("question").join(place, on="question", how="left", maintain_order="left")["place"]
    return Pieces.of(held, of_piece, place.height)


Range = tuple[float, float]
NAMES = (CONSTANT, BY_CLASS)

METRICS = (value_column("turn"), value_column("session"), "shown/answer_words")
"""What a curve may show, the finest first; the last is the share of the answer's words that a pack shows."""


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

    def curve_of(frame: pl.DataFrame, rule: str) -> Curve:
        return as_curve(frame.filter(pl.col("rule") == rule), metric, listed)

    rule, constant = curve_of(curve, RULE), curve_of(curve, CONSTANT)
    against = curve_of(curve, contrast.comparator) if other is None else curve_of(other, RULE)
    low, high = shared_range((rule, against))
    asked = contrast.tokens or (float(constant.tokens[SMALLEST_K - 1].mean()), constant.span()[1])
    low, high = max(low, asked[0]), min(high, asked[1])
    if low >= high:
        return None
    one, two = (rows.with_columns(pl.Series(contrast.metric, side.heights(low, high))) for side in (rule, against))
    return one, two, (low, high)
