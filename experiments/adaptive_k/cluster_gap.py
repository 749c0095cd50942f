"""A cut between clusters of the scores, after CAR.

Xu, Gupta, Aggarwal, Mahadevan, Krishnamachari: Cluster-based Adaptive Retrieval: Dynamic Context Selection for RAG
Applications, arXiv 2511.14769. From the paper: the ordered distances between question and units are grouped into
contiguous clusters, the silhouette chooses the clustering, and the cut lies at a gap between two clusters, by a score
that knows the position, so that the list is not cut too early. Our own choice, because the paper's formulas were not
found: the clusterings are the exact k-means partitions of the line (Wang and Song, Ckmeans.1d.dp, The R Journal 2011)
into 2 to ``most_clusters`` clusters; the score of a boundary behind the i-th unit is its gap times log(1 + i); and
``buffer``, as in Adaptive-k, draws the curve.

With scores s(1) >= ... >= s(n) a distance is (s(1) - s(i)) / (s(1) - s(n)), so that the scale of a ranking's scores
means nothing. Silhouettes and scores are rounded to six decimals, so that machines agree on the cut.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS
from memlab.stages.rank.adaptive_k import ScoreCut

Line = NDArray[np.float64]


def partitions(line: Line, most: int) -> list[list[int]]:
    """Return the partitions of ascending numbers (n,) with the least sum of squares, into 2, 3, ... ``most`` clusters.

    A partition is the list of its boundaries: i stands for one between the i-th number and the next, counted from 1.
    There are never more clusters than distinct numbers.

    >>> partitions(np.array([0.0, 0.1, 0.5, 0.6, 1.0]), 3)
    [[2], [2, 4]]
    """
    n = len(line)
    most = min(most, len(np.unique(line)))
    sums, squares = (np.concatenate([[0.0], np.cumsum(values)]) for values in (line, line**2))
    size = np.arange(n + 1)[None, :] - np.arange(n + 1)[:, None]
    inside = squares[None, :] - squares[:, None] - (sums[None, :] - sums[:, None]) ** 2 / np.maximum(size, 1)
    spread = np.where(size > 0, np.round(inside, 2 * DIGITS), np.inf)  # of numbers i + 1 to j, by (i, j)
    best = spread[0]
    starts: list[NDArray[np.intp]] = []
    found: list[list[int]] = []
    for _ in range(2, most + 1):
        total = best[:, None] + spread
        starts.append(total.argmin(axis=0))
        best = total.min(axis=0)
        bounds = [n]
        for start in reversed(starts):
            bounds.insert(0, int(start[bounds[0]]))
        found.append(bounds[:-1])
    return found


def silhouette(line: Line, bounds: list[int]) -> float:
    """Return the mean silhouette of a partition (Rousseeuw, 1987); a number alone in its cluster has 0.

    >>> silhouette(np.array([0.0, 0.2, 1.0]), [2])  # (1 - .2) / 1, (.8 - .2) / .8 and 0
    0.516667
    """
    cluster = np.searchsorted(bounds, np.arange(len(line)), side="right")
    member = np.eye(len(bounds) + 1)[cluster]
    size = member.sum(axis=0)
    total = np.abs(line[:, None] - line[None, :]) @ member
    own = total[np.arange(len(line)), cluster] / np.maximum(size[cluster] - 1, 1)
    other = np.where(member > 0, np.inf, total / size).min(axis=1)
    larger = np.maximum(own, other)
    width = np.where((size[cluster] > 1) & (larger > 0), (other - own) / np.where(larger > 0, larger, 1), 0.0)
    return round(float(width.mean()), DIGITS)


def cluster_gap(scores: Line, most_clusters: int) -> int:
    """Return how many of the scores (n,), sorted from high to low, lie before the cut; all where no cluster shows.

    The clustering with the highest silhouette is taken, of equal ones that with the fewest clusters; of equal
    boundaries the first.
    """
    if len(scores) < 3 or scores[0] <= scores[-1]:
        return len(scores)
    line = np.round((scores[0] - scores) / (scores[0] - scores[-1]), DIGITS)
    bounds = max(partitions(line, most_clusters), key=lambda bounds: silhouette(line, bounds))
    place = np.array(bounds)
    score = np.round((line[place] - line[place - 1]) * np.log1p(place), DIGITS)
    return int(place[score.argmax()])


@lru_cache(maxsize=20_000)
def _cached_cut(scores: bytes, most_clusters: int) -> int:
    """Return the cut of these scores; each point of a curve asks for it again."""
    return cluster_gap(np.frombuffer(scores), most_clusters)


@stage
class ClusterGap(ScoreCut):
    """Cut at the best gap between clusters of the scores, and show ``buffer`` more units; CAR has no buffer."""

    most_clusters: Annotated[int, Field(ge=2)] = 8  # our choice

    def place(self, scores: Line) -> int:
        """Return the number of units before the best gap."""
        return _cached_cut(scores.tobytes(), self.most_clusters)
