"""Adaptive-k as published: K from the shape of the sorted scores, by one of three strategies.

Taguchi, Maekawa, Bhutani: Efficient Context Selection for Long-Context QA: No Tuning, No Iteration, Just Adaptive-k,
EMNLP 2025; repository megagonlabs/adaptive-k-retrieval. With scores s(1) >= ... >= s(n), cuts in the last tenth are
barred, and ``buffer`` units are added behind the cut:

* largest_gap: the first i with the largest s(i) - s(i + 1);
* moving_average: the same for the average of s(i), ..., s(i + window - 1);
* second_difference: where the gaps, after they have grown, shrink for the first time; where they never do, the largest
  gap of the scores that are not barred.

The repository ranks all passages of a task. Here n is at most ``depth``, the ranks that are measured. It gives no
value for the window. Differences are rounded to six decimals, so that machines agree on the cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.rank.select import Count, cut
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import DIGITS, Tables

Scores = NDArray[np.float64]
Strategy = Literal["largest_gap", "moving_average", "second_difference"]

LARGEST_BUFFER = 50
"""The largest buffer of a curve: its last point shows at least as much as the largest constant K."""


def largest_gap(scores: Scores, tail: float, window: int = 1) -> int:
    """Return how many of the scores (n,), sorted from high to low, lie before the largest gap.

    ``window`` > 1 takes the gaps of a moving average. The last ``tail`` of the gaps do not count. All scores are
    returned if there are no gaps.

    >>> largest_gap(np.array([9.0, 8.0, 3.0, 2.0]), tail=0.1), largest_gap(np.array([9.0]), tail=0.1)
    (2, 1)
    """
    gaps = np.round((scores[:-window] - scores[window:]) / window, DIGITS)
    allowed = gaps[:max(len(gaps) - gaps_in_tail(len(scores), tail), 1)]
    return int(allowed.argmax()) + 1 if len(allowed) else len(scores)


def second_difference(scores: Scores, tail: float) -> int:
    """Return how many of the scores (n,) lie up to the first place where the gaps shrink after they have grown.

    The last ``tail`` of the scores are left out first. The unit behind the large gap is counted, as in the repository.

    >>> second_difference(np.array([9.0, 8.5, 5.0, 4.5, 4.2]), tail=0.1)
    3
    """
    head = scores[:len(scores) - gaps_in_tail(len(scores), tail)]
    bend = np.round(np.diff(head, n=2), DIGITS)  # above 0: the next gap is smaller
    grown = np.minimum.accumulate(bend)[:-1] < 0
    places = np.flatnonzero((bend[1:] > 0) & grown)
    return int(places[0]) + 3 if len(places) else largest_gap(head, tail)


def gaps_in_tail(n: int, tail: float) -> int:
    """Return how many of the n - 1 gaps lie in the tail, where no cut is allowed."""
    return int((n - 1) * tail)


@stage
class AdaptiveK:
    """Cut where the strategy finds the end of the relevant scores, and show ``buffer`` more units."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)
    by_tokens: ClassVar = False
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched twin

    strategy: Strategy = "largest_gap"
    buffer: Annotated[int, Field(ge=0)] = 5  # published
    tail: Annotated[float, Field(ge=0, lt=1)] = 0.1  # published: no cut in the last tenth of the scores
    window: Annotated[int, Field(ge=2)] = 3  # of the moving average; the repository names none
    depth: Count = 200  # the scores looked at; ranks beyond are never shown

    def variations(self) -> Iterator[AdaptiveK]:
        """Yield the rule with a ``buffer`` from 0 to ``LARGEST_BUFFER``."""
        for buffer in range(LARGEST_BUFFER + 1):
            yield replace(self, buffer=buffer)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        lists = tables["ranking"].filter(pl.col("rank") <= self.depth).sort("question", "rank").group_by(
            "question", maintain_order=True).agg("score")
        found = [self._before(scores.to_numpy()) for scores in lists["score"]]
        k = [min(place + self.buffer, self.depth) for place in found]
        return cut(tables["ranking"], lists.select("question", pl.Series("k", k, pl.Int32)))

    def _before(self, scores: Scores) -> int:
        if self.strategy == "second_difference":
            return second_difference(scores, self.tail)
        averaged = self.strategy == "moving_average" and len(scores) > self.window
        return largest_gap(scores, self.tail, self.window if averaged else 1)
