"""One contrast: an arm against its comparator on one metric, question by question, and whether it changed any output.

A technique that changes no output has no effect to test; that must read "changed nothing", never "no effect".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NotRequired, TypedDict, cast

import numpy as np
import polars as pl

from memlab.evaluate import statistics
from memlab.evaluate.summary import COSTS, is_pooled, view
from memlab.support.errors import MemlabError, did_you_mean

OUTPUTS = ("ranking", "selection", "context", "answers")

KEPT_RANKS = 200
"""Ranks per question that a run folder keeps; deeper ones are kept only where selected, so they are not compared."""


def same_ranking(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    """Return whether two rankings have the same unit at every rank that a run folder keeps."""
    kept = pl.col("rank") <= KEPT_RANKS
    return same_rows(one.filter(kept), other.filter(kept), ["question", "rank", "unit"])


def same_rows(one: pl.DataFrame, other: pl.DataFrame, columns: list[str]) -> bool:
    """Return whether two frames have the same rows in these columns, and where both have them in level, session, turns.

    Two chunkings can give one number to different memories. The order of rows does not matter.
    """
    about = [c for c in ("level", "session", "turns") if c in one.columns and c in other.columns]
    rows, others = (frame.select(*columns, *about).sort(columns[:2]) for frame in (one, other))
    return rows.equals(others)


ALPHA = 0.05
"""A declared difference is shown where its corrected p is at most this."""

PLANNED = 0.03
"""The difference that power is planned for unless a contrast names another: 3 points, the size of most published
gains on these benchmarks."""

TEST = "t over groups of questions (CR2)"


@dataclass(frozen=True)
class Contrast:
    """A claim made before the run: ``arm`` is greater (or less) than ``comparator`` in ``metric``.

    The comparator ``twin`` stands for the arm's own token-matched baseline. ``metric`` is a name of metrics.json.
    ``planned`` is the difference, in the metric's units, that the power is stated for. A metric ``curve/...`` compares
    whole recall-token curves, over the range ``tokens``; the comparator may then be ``constant`` (one K for all) or
    ``constant_by_class`` (the best K for each class of question) on the arm's own ranking.

    >>> Contrast("gap", "twin", "selected/session/recall_all").against
    'gap.twin'
    """

    arm: str
    comparator: str
    metric: str
    direction: Literal["greater", "less"] = "greater"
    planned: float | None = None
    tokens: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.tokens is not None and not (len(self.tokens) == 2 and 0 <= self.tokens[0] < self.tokens[1]):
            raise MemlabError(f"tokens {list(self.tokens)} is no range", where=f"contrast of {self.arm}",
                              fix="give the fewest and the most tokens, such as [250, 2000]")
        if self.direction not in ("greater", "less"):
            raise MemlabError(f"direction '{self.direction}' is unknown", where=f"contrast of {self.arm}",
                              fix=did_you_mean(self.direction, ("greater", "less")))

    @property
    def against(self) -> str:
        """The comparator's name."""
        return f"{self.arm}.twin" if self.comparator == "twin" else self.comparator

    @property
    def claim(self) -> str:
        """Which arm is greater or less, as ``gap > gap.twin``."""
        return f"{self.arm} {'>' if self.direction == 'greater' else '<'} {self.against}"


class Effect(TypedDict, total=False):
    """The tested difference, arm less comparator; None where it is undefined.

    Wins are questions where the arm does better in the contrast's direction. Questions of one group are not
    independent: of the ``groups``, ``differing`` have a difference other than 0, and ``agree`` have it in that
    direction. ``p`` is two-sided; ``p_sign_flip`` checks it without t's assumption. ``smallest_detectable`` is the true
    difference found in 80 % of runs like this one, at the level of the first step of Holm's correction, ``power`` the
    chance to find ``planned``; both are None for a contrast that was not declared.
    """

    difference: float | None
    low: float | None
    high: float | None
    test: str | None
    p: float | None
    p_adjusted: float | None
    p_sign_flip: float | None
    df: float | None
    wins: int | None
    losses: int | None
    ties: int | None
    smallest_detectable: float | None
    power: float | None
    planned: float | None
    groups: int | None
    differing: int | None
    agree: int | None
    tokens: list[float] | None


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


def measure(contrast: Contrast, arm: pl.DataFrame, comparator: pl.DataFrame, *, alpha: float, seed: int,
            declared: bool = True) -> ContrastResult:
    """Test one contrast on two per-question frames; return its row of comparison.json before Holm's correction.

    The difference is that of the two arms' means over the questions that define the metric in both. Its p and its
    interval come from one t-test over the independent groups of these questions (column ``group``).
    """
    row: ContrastResult = {
        "arm": contrast.arm, "comparator": contrast.against, "metric": contrast.metric,
        "direction": contrast.direction, "n": 0, **UNKNOWN}
    pairs = paired_values(arm, comparator, contrast.metric)
    if pairs is None:
        return row
    is_cost = view(arm, contrast.metric)[1] in COSTS
    one, two, groups = pairs
    differences = one - two
    gains = differences * (1 if contrast.direction == "greater" else -1)
    row |= {"n": len(gains), "wins": int((gains > 0).sum()), "losses": int((gains < 0).sum()),
            "ties": int((gains == 0).sum())}
    if is_pooled(contrast.metric):  # a part of a pooled figure is no win or loss
        row |= {"wins": None, "losses": None, "ties": None}
    sums, effect = statistics.group_sums(gains, groups), statistics.grouped_mean(differences, groups)
    flipped = statistics.sign_flip(sums, seed) if len(sums) > 1 else None
    row |= {"groups": len(sums), "differing": int((sums != 0).sum()), "agree": int((sums > 0).sum())}
    row |= _test(effect, flipped)
    if declared:
        row["planned"] = contrast.planned if contrast.planned is not None else (None if is_cost else PLANNED)
        row |= _plan(effect, row["planned"], alpha)
    if not is_cost and row["low"] is not None and row["high"] is not None:
        row["low"], row["high"] = max(-1.0, row["low"]), min(1.0, row["high"])
    return row


def paired_values(arm: pl.DataFrame, comparator: pl.DataFrame, metric: str
                  ) -> tuple[statistics.Values, statistics.Values, np.ndarray] | None:
    """Return both arms' values and the groups (n,) of the questions that define the metric in both, or None."""
    (one, column), (two, _) = view(arm, metric), view(comparator, metric)
    if column not in one.columns or column not in two.columns:
        return None
    both = one.select("question", "group", column).join(two.select("question", pl.col(column).alias("other")),
                                                         on="question").drop_nulls().sort("question")
    if both.is_empty():
        return None
    return both[column].to_numpy(), both["other"].to_numpy(), both["group"].to_numpy()


def _test(effect: statistics.GroupedMean, flipped: float | None) -> Effect:
    p, interval = effect.p, effect.interval()
    if p is None and flipped is not None:  # the same difference in every question leaves t nothing to go by
        p, interval = flipped, (effect.value, effect.value) if flipped <= ALPHA else None
    low, high = interval or (None, None)
    return {"difference": effect.value, "low": low, "high": high, "test": None if p is None else TEST, "p": p,
            "p_sign_flip": flipped, "df": effect.df}


def _plan(effect: statistics.GroupedMean, planned: float | None, alpha: float) -> Effect:
    if not effect.error or effect.df is None:  # no spread to plan with
        return {}
    return {"smallest_detectable": statistics.smallest_detectable(effect.error, effect.df, alpha),
            "power": None if planned is None else statistics.t_power(planned, effect.error, effect.df, alpha)}
