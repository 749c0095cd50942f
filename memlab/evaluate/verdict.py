"""The verdict of a comparison: which arm to use at equal cost, and how surely.

Arms whose rankings differ are compared by what the head of each ranking holds that fits into the same tokens for every
question (``memlab.evaluate.evidence.within_tokens``). Another metric, declared or a judge's, decides only where the
arms show nearly the same number of tokens by their own choice.

Arms are put into tiers. A tier is led by its best arm; an arm belongs to it unless the leader is shown to be ahead, by
the paired t-test over groups with Holm's correction over all arms that the leader is compared with. No arm is preferred
where the best one is shown to be ahead of none. Rules that select from one ranking are compared over whole curves. They
have no tiers: what a rule finds depends on its budget, and ``winner`` names the rule that wins. The verdict is put into
words in ``memlab.report.opening``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import polars as pl

from memlab.evaluate.contrast import ALPHA, Contrast, ContrastResult, measure
from memlab.evaluate.curves import is_curve
from memlab.evaluate.evidence import BUDGETS, within_metric
from memlab.evaluate.retrieval import Level
from memlab.evaluate.statistics import holm, interval_error, more_observations
from memlab.evaluate.summary import COSTS, LOW_IS_BETTER, view


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
    """Return which rule wins among the curve contrasts; None without such contrasts, or where none is defined.

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
        return RuleVerdict(first, True, _with_difference(rules[first]), tuple(others))
    measured = [arm for arm, rows in rules.items() if _with_difference(rows)]
    if not measured:
        return None
    place = {"shown": 2, "likely": 1}
    nearest = max(measured, key=lambda a: (min(place.get(row["verdict"], 0) for row in rules[a]), _largest(rules[a])))
    return RuleVerdict(nearest, False, _with_difference(rules[nearest]))


def _with_difference(rows: Sequence[ContrastResult]) -> tuple[ContrastResult, ...]:
    return tuple(row for row in rows if row["difference"] is not None)


def _largest(rows: Sequence[ContrastResult]) -> float:
    return max((row["difference"] for row in rows if row["difference"] is not None), default=float("-inf"))


MARGIN = 0.02
"""Arms are level where the 95 % interval of their difference excludes a difference of this size: 2 points."""

SAME_COST = 0.9
"""Arms cost the same where the one with the fewest mean tokens shows at least this share of the most."""

DEFAULT = "best"
"""The system that is taken among level ones where no contrast declares one of them."""

LEVELS: tuple[Level, ...] = ("turn", "session")


class Rival(TypedDict):
    """Another arm against the best one: its difference (rival less best), interval and p after Holm.

    ``needed`` is how many more questions would show the difference that was seen in 80 % of runs.
    """

    arm: str
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


class Standing(TypedDict):
    """The ranking of arms by ``metric``, best first, and the comparison of the best arm with its rivals.

    ``questions`` define the metric, in so many independent ``groups``. ``tied`` are those that it is not shown to be
    ahead of, ``behind`` is the nearest of the others.
    """

    metric: str
    questions: int
    groups: int
    ranking: list[Place]
    tied: list[Rival]
    behind: Rival | None


class Recommendation(Standing):
    """The standing that the verdict goes by, and those within other ``BUDGETS``, by their tokens."""

    elsewhere: dict[str, Standing]


def verdict(frames: Mapping[str, pl.DataFrame], contrasts: Sequence[Contrast], metric: str | None,
            budget: int) -> Recommendation | None:
    """Rank the arms and test them against the best; None with fewer than two, no metric for all of them, or curves.

    ``frames`` has the per-question frame of each candidate; ``metric`` is their ``main_metric``. Of arms that are
    level with the best, one that a contrast declares is taken as the best, or else the default system.
    """
    if metric is None or len(frames) < 2 or any(is_curve(c.metric) for c in contrasts):  # noqa: PLR2004  (a pair)
        return None
    preferred = [*dict.fromkeys(c.arm for c in contrasts), DEFAULT]
    beside = {tokens: name for tokens in BUDGETS for level in LEVELS if tokens != budget
              and metric == within_metric(budget, level) and _all_have(frames, name := within_metric(tokens, level))}
    return {**_standing(frames, metric, preferred),
            "elsewhere": {str(tokens): _standing(frames, name, preferred) for tokens, name in beside.items()}}


def _standing(frames: Mapping[str, pl.DataFrame], metric: str, preferred: Sequence[str]) -> Standing:
    values = {name: _mean(frame, metric) or 0.0 for name, frame in frames.items()}
    order = sorted(frames, key=lambda name: (-values[name], name))
    rivals = _against(order[0], order[1:], frames, metric)
    level = {rival["arm"] for rival in rivals if rival["arm"] not in _apart(rivals) and is_level(rival)}
    taken = next((name for name in preferred if name == order[0] or name in level), order[0])
    others = [name for name in order if name != taken]
    if taken != order[0] and _apart(rivals) <= _apart(own := _against(taken, others, frames, metric)):
        order, rivals = [taken, *others], own
    ranking: list[Place] = []
    waiting, against, tier = order, rivals, 0
    while waiting:
        tier += 1
        apart = _apart(against)
        ranking += [{"arm": name, "tier": tier, "value": values[name]} for name in waiting if name not in apart]
        waiting = [name for name in waiting if name in apart]
        against = _against(waiting[0], waiting[1:], frames, metric) if waiting else []
    rows, column = view(frames[order[0]], metric)
    rows = rows.filter(pl.col(column).is_not_null())
    return {"metric": metric, "questions": rows.height, "groups": rows["group"].n_unique(), "ranking": ranking,
            "tied": [rival for rival in rivals if rival["arm"] not in _apart(rivals)],
            "behind": next((rival for rival in rivals if rival["arm"] in _apart(rivals)), None)}


def _apart(rivals: Sequence[Rival]) -> set[str]:
    """Return the arms that the best one is shown to be ahead of."""
    return {r["arm"] for r in rivals if r["p"] is not None and r["p"] <= ALPHA and r["difference"] <= 0}


def is_level(rival: Rival) -> bool:
    """Return whether an arm has the best one's value, or an interval that excludes a difference of ``MARGIN``."""
    low, high = rival["low"], rival["high"]
    return rival["difference"] == 0 or low is not None and high is not None and -MARGIN < low <= high < MARGIN


def main_metric(frames: Mapping[str, pl.DataFrame], contrasts: Sequence[Contrast], judged: Sequence[str],
                budget: int) -> str | None:
    """Return the metric that arms are ranked by: the first that all have.

    Those of curves come first, then the declared and the judges' where the arms cost the same, then what rankings cut
    at ``budget`` hold, which also takes the place of what arms show by their own choice. That is the last resort, for
    rankings without tokens.
    """
    curves = [c.metric.removeprefix("curve/") for c in contrasts if is_curve(c.metric)]
    equal = [within_metric(budget, level) for level in LEVELS]
    own = {f"selected/{level}/recall_all": within for level, within in zip(LEVELS, equal)}
    declared = [own.get(m, m) for m in (*(c.metric for c in contrasts if not is_curve(c.metric)), *judged)
                if not m.removesuffix("_mean").endswith(COSTS) and not m.startswith(LOW_IS_BETTER)]
    wanted = [*curves, *declared, *equal] if _same_cost(frames) else [*curves, *equal, *declared]
    return next((name for name in [*wanted, *own] if _all_have(frames, name)), None)


def _all_have(frames: Mapping[str, pl.DataFrame], metric: str) -> bool:
    return bool(frames) and all(_mean(frame, metric) is not None for frame in frames.values())


def _same_cost(frames: Mapping[str, pl.DataFrame]) -> bool:
    """Return whether the arms show nearly the same number of tokens by their own choice."""
    tokens = [_mean(frame, "context/tokens") or 0.0 for frame in frames.values()]
    return not tokens or min(tokens) >= SAME_COST * max(tokens)


def _mean(questions: pl.DataFrame, metric: str) -> float | None:
    rows, column = view(questions, metric)
    value = rows[column].drop_nulls().mean() if column in rows.columns else None
    return float(value) if isinstance(value, int | float) else None


def _against(leader: str, others: Sequence[str], frames: Mapping[str, pl.DataFrame], metric: str) -> list[Rival]:
    rows: list[ContrastResult] = [
        measure(Contrast(other, leader, metric), frames[other], frames[leader], alpha=ALPHA, seed=0, declared=False)
        for other in others]
    adjusted = holm([1.0 if row["p"] is None else row["p"] for row in rows])
    return [{"arm": row["arm"], "difference": row["difference"] or 0.0, "low": row["low"], "high": row["high"],
             "p": None if row["p"] is None else p, "needed": more_questions(row, ALPHA / max(len(others), 1))}
            for row, p in zip(rows, adjusted)]


def more_questions(row: ContrastResult, alpha: float) -> int | None:
    """Return how many more questions would show the difference that was seen in 80 % of runs, at its spread.

    None where no difference was seen, or nothing can be tested.
    """
    difference, low, high, df = row["difference"], row["low"], row["high"], row["df"]
    if not difference or low is None or high is None or df is None or low == high:
        return None
    return more_observations(abs(difference), interval_error(low, high, df), df, row["n"], alpha)
