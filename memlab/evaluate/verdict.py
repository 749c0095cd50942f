"""The verdict of a comparison: which arm to use, how surely, and which cheaper arm is as good.

Arms are ranked by one metric and put into tiers. A tier is led by its best arm; an arm belongs to it unless the leader
is shown to be ahead, by the paired t-test over groups with Holm's correction over all arms that the leader is compared
with. No arm is preferred where the best one is shown to be ahead of none. Rules that are compared over whole curves
have no tiers: what a rule finds depends on its budget, and ``winner`` names the rule that wins. The verdict is put into
words in ``memlab.report.opening``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import polars as pl

from memlab.evaluate.contrast import ALPHA, PLANNED, Contrast, ContrastResult, measure
from memlab.evaluate.curves import is_curve
from memlab.evaluate.statistics import Assumptions, holm, interval_error, more_observations
from memlab.evaluate.summary import COSTS, view


@dataclass(frozen=True)
class RuleVerdict:
    """The rule that wins over whole curves, or, if ``wins`` is false, the one that is nearest to it.

    ``rows`` are its contrasts that could be measured. ``also`` names the other rules that are shown to beat what they
    are compared with.
    """

    arm: str
    wins: bool
    rows: tuple[ContrastResult, ...]
    also: tuple[str, ...] = ()

    @property
    def nearest(self) -> ContrastResult:
        """Return the contrast with the smallest difference, of those that are shown if the rule wins."""
        return min((row for row in self.rows if not self.wins or row["verdict"] == "shown"),
                   key=lambda row: row["difference"] or 0.0)


def winner(contrasts: Sequence[ContrastResult]) -> RuleVerdict | None:
    """Return which rule wins among the declared curve contrasts; None without such contrasts, or where none is defined.

    A rule wins if all its contrasts are shown, other than those with a rule that wins without it, and no such rule is
    shown to be ahead of it. Of several, the one with the largest difference is named first.
    """
    rules: dict[str, list[ContrastResult]] = {}
    for row in contrasts:
        if is_curve(row["metric"]) and row["direction"] == "greater":
            rules.setdefault(row["arm"], []).append(row)
    surely = {arm for arm, rows in rules.items() if all(row["verdict"] == "shown" for row in rows)}
    ahead = {arm: rows for arm, rows in rules.items() if any(row["verdict"] == "shown" for row in rows) and all(
        row["verdict"] == "shown" or row["comparator"] in surely and row["verdict"] in ("open", "likely")
        for row in rows)}
    beaten = {row["comparator"] for rows in ahead.values() for row in rows if row["verdict"] == "shown"}
    winners = sorted(ahead.keys() - beaten, key=lambda arm: (-_largest(rules[arm]), arm))
    if winners:
        first, others = winners[0], [*winners[1:], *sorted(ahead.keys() & beaten)]
        return RuleVerdict(first, True, _measured(rules[first]), tuple(others))
    measured = [arm for arm, rows in rules.items() if _measured(rows)]
    if not measured:
        return None
    nearest = max(measured, key=lambda arm: (min(_rank(row) for row in rules[arm]), _largest(rules[arm])))
    return RuleVerdict(nearest, False, _measured(rules[nearest]))


def _measured(rows: Sequence[ContrastResult]) -> tuple[ContrastResult, ...]:
    return tuple(row for row in rows if row["difference"] is not None)


def _largest(rows: Sequence[ContrastResult]) -> float:
    return max((row["difference"] for row in rows if row["difference"] is not None), default=float("-inf"))


def _rank(row: ContrastResult) -> int:
    return {"shown": 2, "likely": 1}.get(row["verdict"], 0)


MARGIN = 0.02
"""A cheaper arm is as good if the 95 % interval of its difference excludes a loss of this size: 2 points."""

PRICE = 0.5
"""A cheaper arm shows at most this share of the best arm's tokens."""

CHOICES = ("selected/turn/recall_all", "selected/session/recall_all", "turn/ndcg@10", "session/ndcg@10")
"""Metrics to rank arms by where no contrast is declared and no answer is judged, in this order."""


class Rival(TypedDict):
    """Another arm against the best one: its difference (rival less best), interval and p after Holm.

    ``needed`` is how many more questions would show a difference of 3 points (``PLANNED``) in 80 % of runs.
    """

    arm: str
    tokens: float | None
    difference: float
    low: float | None
    high: float | None
    p: float | None
    needed: int | None


class Place(TypedDict):
    """One arm's place in the ranking."""

    arm: str
    tier: int
    value: float
    tokens: float | None


class Recommendation(TypedDict):
    """The ranking by ``metric``, best first, and the comparison of the best arm with its rivals.

    ``questions`` define the metric, in so many independent ``groups``. ``tied`` are those that it is
    not shown to be ahead of, ``behind`` is the nearest of the others, ``cheaper`` the cheapest of the ``cheap`` arms
    with at most half of its tokens that is as good.
    """

    metric: str
    questions: int
    groups: int
    ranking: list[Place]
    tied: list[Rival]
    behind: Rival | None
    cheaper: Rival | None
    cheap: int


def verdict(frames: Mapping[str, pl.DataFrame], contrasts: Sequence[Contrast],
            judged: Sequence[str] = ()) -> Recommendation | None:
    """Rank the arms and test them against the best; None with fewer than two, no metric for all of them, or curves.

    ``frames`` has the per-question frame of each candidate; ``judged`` names the judges' metrics. Ties in value are
    broken by fewer tokens, then by name.
    """
    if any(is_curve(c.metric) for c in contrasts):
        return None
    metric = main_metric(frames, contrasts, judged)
    if metric is None or len(frames) < 2:  # noqa: PLR2004  (a comparison needs two)
        return None
    values = {name: _mean(frame, metric) or 0.0 for name, frame in frames.items()}
    tokens = {name: _mean(frame, "context/tokens") for name, frame in frames.items()}
    order = sorted(frames, key=lambda name: (-values[name], tokens[name] or 0.0, name))
    ranking: list[Place] = []
    waiting, rivals, tier = order, list[Rival](), 0
    while waiting:
        leader, rest = waiting[0], waiting[1:]
        tier += 1
        against = _against(leader, rest, frames, metric, tokens)
        rivals = rivals or against
        apart = {rival["arm"] for rival in against if rival["p"] is not None and rival["p"] <= ALPHA}
        ranking += [{"arm": name, "tier": tier, "value": values[name], "tokens": tokens[name]}
                    for name in waiting if name not in apart]
        waiting = [name for name in rest if name in apart]
    first_tier = {place["arm"] for place in ranking if place["tier"] == 1}
    price = tokens[order[0]]
    cheap = [] if price is None else [
        rival for rival in rivals if rival["tokens"] is not None and rival["tokens"] <= PRICE * price]
    good = [rival for rival in cheap if rival["low"] is not None and rival["low"] > -MARGIN]
    sizes = _sizes(frames[order[0]], metric)
    return {
        "metric": metric, "questions": sizes[0], "groups": sizes[1], "ranking": ranking,
        "tied": [r for r in rivals if r["arm"] in first_tier],
        "behind": next((r for r in rivals if r["arm"] not in first_tier), None),
        "cheaper": min(good, key=lambda r: (r["tokens"] or 0.0, r["arm"]), default=None), "cheap": len(cheap)}


def main_metric(frames: Mapping[str, pl.DataFrame], contrasts: Sequence[Contrast],
                judged: Sequence[str] = ()) -> str | None:
    """Return the metric that arms are ranked by: the first that all have, of the declared, the judges', ``CHOICES``."""
    return next((name for name in _metrics(contrasts, judged)
                 if frames and all(_mean(frame, name) is not None for frame in frames.values())), None)


def _metrics(contrasts: Sequence[Contrast], judged: Sequence[str]) -> list[str]:
    costs = tuple(f"/{cost}" for cost in COSTS)
    return [m for m in dict.fromkeys([*(c.metric.removeprefix("curve/") for c in contrasts), *judged, *CHOICES])
            if not m.removesuffix("_mean").endswith(costs) and m not in COSTS]


def _mean(questions: pl.DataFrame, metric: str) -> float | None:
    rows, column = view(questions, metric)
    value = rows[column].drop_nulls().mean() if column in rows.columns else None
    return float(value) if isinstance(value, int | float) else None


def _against(leader: str, others: Sequence[str], frames: Mapping[str, pl.DataFrame], metric: str,
             tokens: Mapping[str, float | None]) -> list[Rival]:
    rows: list[ContrastResult] = [
        measure(Contrast(other, leader, metric), frames[other], frames[leader], alpha=ALPHA, seed=0, declared=False)
        for other in others]
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    return [{"arm": row["arm"], "tokens": tokens[row["arm"]], "difference": row["difference"] or 0.0,
             "low": row["low"], "high": row["high"], "p": None if row["p"] is None else p,
             "needed": needed(row, ALPHA / max(len(others), 1))}
            for row, p in zip(rows, adjusted)]


def needed(row: ContrastResult, alpha: float) -> int | None:
    """Return how many more questions would show the planned difference in 80 % of runs, at the spread observed.

    Where the arms answer all alike, the spread that plans assume (``Assumptions``) takes its place. None where nothing
    can be tested.
    """
    n, df, planned = row["n"], row["df"], row["planned"] or PLANNED
    if df is None or n < 2:  # noqa: PLR2004  (one question has no spread)
        return None
    error = 0.0 if row["low"] is None or row["high"] is None else interval_error(row["low"], row["high"], df)
    return more_observations(planned, error or Assumptions().error(np.ones(n), planned), df, n, alpha)


def _sizes(questions: pl.DataFrame, metric: str) -> tuple[int, int]:
    """Return the number of questions that define a metric, and of their groups."""
    rows, column = view(questions, metric)
    rows = rows.filter(pl.col(column).is_not_null())
    return rows.height, rows["group"].n_unique()
