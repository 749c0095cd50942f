"""One contrast: an arm against its comparator on one metric, question by question, in a direction named before."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict, cast

import numpy as np
import polars as pl
from scipy import stats

from memlab.errors import MemlabError, did_you_mean
from memlab.evaluate.averages import COSTS, view
from memlab.evaluate.intervals import Interval, bca, newcombe, student
from memlab.evaluate.power import detectable, mcnemar_power, smallest_significant, t_power
from memlab.evaluate.statistics import RESAMPLES, Values, by_cluster, mcnemar, sign_flip, smallest_p
from memlab.evaluate.summary import MEAN_RESAMPLES, is_binary

PLANNED = 0.03
"""The difference that power is planned for unless a contrast names another: 3 points, the size of most published
gains on these benchmarks."""

MCNEMAR = "exact McNemar"


@dataclass(frozen=True)
class Contrast:
    """A claim made before the run: ``arm`` is greater (or less) than ``comparator`` in ``metric``.

    The comparator ``twin`` stands for the arm's own token-matched twin. ``metric`` is a name of metrics.json.
    ``planned`` is the difference, in the metric's units, that the power is stated for.

    >>> Contrast("gap", "twin", "selected/session/recall_all").against
    'gap.twin'
    """

    arm: str
    comparator: str
    metric: str
    direction: Literal["greater", "less"] = "greater"
    planned: float | None = None

    def __post_init__(self) -> None:
        if self.direction not in ("greater", "less"):
            raise MemlabError(f"direction '{self.direction}' is unknown", where=f"contrast of {self.arm}",
                              fix=did_you_mean(self.direction, ("greater", "less")))

    @property
    def against(self) -> str:
        """The comparator's name."""
        return f"{self.arm}.twin" if self.comparator == "twin" else self.comparator


class Effect(TypedDict, total=False):
    """The tested difference, arm less comparator; None where it is undefined.

    Wins are questions where the arm does better in the contrast's direction. With alpha the level after correction,
    ``smallest_significant`` is the smallest difference that could have reached it, ``smallest_detectable`` the true
    one found in 80 % of runs, ``power`` the chance to find ``planned``; all three are None for a contrast that was not
    declared. With conversations as ``clusters``, ``differing`` of them have a difference other than 0, and ``agree``
    have it in the contrast's direction. ``reachable`` is false where p would stay above alpha even if all conversations
    that differ agreed.
    """

    difference: float | None
    low: float | None
    high: float | None
    test: str | None
    p: float | None
    p_adjusted: float | None
    wins: int | None
    losses: int | None
    ties: int | None
    smallest_detectable: float | None
    power: float | None
    smallest_significant: float | None
    planned: float | None
    clusters: int | None
    differing: int | None
    agree: int | None
    smallest_p: float | None
    reachable: bool | None


UNKNOWN = cast(Effect, dict.fromkeys(Effect.__annotations__))


class ContrastResult(Effect):
    """A contrast's row of comparison.json; ``memlab.evaluate.compare`` adds the verdict and the sentence."""

    arm: str
    comparator: str
    metric: str
    direction: Literal["greater", "less"]
    n: int
    verdict: NotRequired[str]
    words: NotRequired[str]


def measure(contrast: Contrast, arm: pl.DataFrame, comparator: pl.DataFrame, *, clustered: bool, alpha: float,
            seed: int, declared: bool = True) -> ContrastResult:
    """Test one contrast on two per-question frames; return its row of comparison.json before Holm's correction.

    0/1 metrics: exact McNemar and Newcombe's interval. Graded ones: sign-flip permutation test and BCa interval.
    ``clustered``: the differences of the conversations (mean over a conversation's questions), their sign-flip
    test and t-interval; ``difference`` is then their mean, each conversation weighing the same.
    """
    row: ContrastResult = {
        "arm": contrast.arm, "comparator": contrast.against, "metric": contrast.metric,
        "direction": contrast.direction, "n": 0, **UNKNOWN}
    pairs = paired(arm, comparator, contrast.metric)
    if pairs is None:
        return row
    one, two, corpus = pairs
    gains = (one - two) * (1 if contrast.direction == "greater" else -1)
    wins, losses, ties = int((gains > 0).sum()), int((gains < 0).sum()), int((gains == 0).sum())
    row |= {"n": len(gains), "wins": wins, "losses": losses, "ties": ties}
    is_cost = view(arm, contrast.metric)[1] in COSTS
    differences = by_cluster(one - two, corpus) if clustered else one - two
    if clustered:
        row |= _by_conversation(differences, contrast, alpha)
    elif is_binary(one) and is_binary(two):
        row |= _binary(one, two)
    else:
        row |= _graded(differences, seed, RESAMPLES if declared else MEAN_RESAMPLES)
    if declared:
        planned = contrast.planned if contrast.planned is not None else (None if is_cost else PLANNED)
        row["planned"] = planned
        if row["test"] == MCNEMAR:
            row |= _binary_plan(len(gains), wins + losses, planned, alpha)
        else:
            row |= _mean_plan(differences, planned, alpha)
    if not is_cost and row["low"] is not None and row["high"] is not None:
        row["low"], row["high"] = max(-1.0, row["low"]), min(1.0, row["high"])
    return row


def paired(arm: pl.DataFrame, comparator: pl.DataFrame, metric: str) -> tuple[Values, Values, np.ndarray] | None:
    """Return both arms' values and the corpus (n,) of the questions that define the metric in both, or None."""
    (one, column), (two, _) = view(arm, metric), view(comparator, metric)
    if column not in one.columns or column not in two.columns:
        return None
    both = one.select("question", "corpus", column).join(two.select("question", pl.col(column).alias("other")),
                                                         on="question").drop_nulls().sort("question")
    if both.is_empty():
        return None
    return both[column].to_numpy(), both["other"].to_numpy(), both["corpus"].to_numpy()


def _binary(one: Values, two: Values) -> Effect:
    n, first, second = len(one), int(((one == 1) & (two == 0)).sum()), int(((one == 0) & (two == 1)).sum())
    both = int(((one == 1) & (two == 1)).sum())
    return {"difference": (first - second) / n, **_bounds(newcombe(both, first, second, n - both - first - second)),
            "test": MCNEMAR, "p": mcnemar(first, second), "smallest_p": smallest_p(first + second), "reachable": True}


def _graded(differences: Values, seed: int, resamples: int) -> Effect:
    return {"difference": float(differences.mean()), **_bounds(bca(differences[:, None], seed, resamples)[0]),
            "test": "sign-flip permutation, BCa bootstrap", "p": sign_flip(differences, seed),
            "smallest_p": smallest_p(int((differences != 0).sum())), "reachable": True}


def _by_conversation(differences: Values, contrast: Contrast, alpha: float) -> Effect:
    wanted, differing = 1 if contrast.direction == "greater" else -1, int((differences != 0).sum())
    least = smallest_p(differing)
    return {"difference": float(differences.mean()), **_bounds(student(differences)),
            "test": "sign-flip over conversations, t-interval", "p": sign_flip(differences), "smallest_p": least,
            "reachable": least <= alpha, "clusters": len(differences), "differing": differing,
            "agree": int((differences * wanted > 0).sum())}


def _binary_plan(n: int, differ: int, planned: float | None, alpha: float) -> Effect:
    def power(difference: float) -> float:
        return mcnemar_power(n, difference, differ / n, alpha)

    return {"smallest_significant": smallest_significant(n, differ, alpha),
            "smallest_detectable": detectable(power, 1.0), "power": None if planned is None else power(planned)}


def _mean_plan(differences: Values, planned: float | None, alpha: float) -> Effect:
    n = len(differences)
    deviation = float(differences.std(ddof=1)) if n > 1 else 0.0
    if deviation == 0:  # nothing moved, or everything by the same: no spread to plan with
        return {}

    def power(difference: float) -> float:
        return t_power(n, difference, deviation, alpha)

    critical = float(stats.t.isf(alpha / 2, n - 1)) * deviation / float(np.sqrt(n))
    return {"smallest_significant": critical if smallest_p(n) <= alpha else None,
            "smallest_detectable": detectable(power, 20 * deviation),
            "power": None if planned is None else power(planned)}


def _bounds(interval: Interval) -> Effect:
    return {"low": interval[0], "high": interval[1]} if interval else {"low": None, "high": None}
