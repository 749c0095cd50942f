from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from adaptive_k.cluster_gap import ClusterGap, partitions, silhouette
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables
from memlab.store import Store
from tests.stages.rank.rankings import ranking, shown

pytestmark = pytest.mark.nightly

SCORES = [10.0, 9.8, 7.0, 6.9, 6.8, 2.0, 1.9, 1.8, 1.7, 0.0]
LINE = np.round((10 - np.array(SCORES)) / 10, 6)


def ranks(rule: ClusterGap, *lists: list[float]) -> list[list[int]]:
    return shown(rule.run(Tables(ranking=ranking(*lists)), Store())["ranking"])


def squares(line: list[float], bounds: tuple[int, ...]) -> float:
    edges = [0, *bounds, len(line)]
    return sum(sum((x - sum(part) / len(part)) ** 2 for x in part)
               for part in (line[a:b] for a, b in zip(edges, edges[1:])))


def plain_silhouette(line: list[float], bounds: list[int]) -> float:
    """The definition, point by point."""
    edges = [0, *bounds, len(line)]
    clusters = [range(a, b) for a, b in zip(edges, edges[1:])]
    widths = []
    for cluster in clusters:
        for i in cluster:
            if len(cluster) == 1:
                widths.append(0.0)
                continue
            own = sum(abs(line[i] - line[j]) for j in cluster) / (len(cluster) - 1)
            other = min(sum(abs(line[i] - line[j]) for j in c) / len(c) for c in clusters if c != cluster)
            widths.append((other - own) / max(own, other) if max(own, other) else 0.0)
    return sum(widths) / len(widths)


def test_the_clustering_with_the_highest_silhouette_is_cut_at_its_best_boundary() -> None:
    bounds = max(partitions(LINE, 8), key=lambda b: plain_silhouette(LINE.tolist(), b))
    assert bounds == [2, 5]  # 10 9.8 | 7 6.9 6.8 | 2 1.9 1.8 1.7 0; gaps times log(1 + i): .28 log 3 < .48 log 6
    assert ranks(ClusterGap(), SCORES) == [[1, 2, 3, 4, 5]]


def test_a_ranking_without_clusters_is_shown_whole() -> None:
    assert ranks(ClusterGap(), [3.0], [5.0, 1.0], [4.0, 4.0, 4.0]) == [[1], [1, 2], [1, 2, 3]]
    assert ranks(ClusterGap(), [5.0, 1.0, 0.9]) == [[1]]


def test_ranks_beyond_the_depth_are_neither_looked_at_nor_shown() -> None:
    assert ranks(ClusterGap(depth=3), [9.0, 8.9, 6.0, -90.0, -91.0]) == [[1, 2]]
    assert ranks(ClusterGap(depth=3, buffer=9), [9.0, 8.9, 6.0, -90.0, -91.0]) == [[1, 2, 3]]


lists = st.lists(st.integers(-40, 40).map(lambda i: i / 4), min_size=1, max_size=30).map(
    lambda scores: sorted(scores, reverse=True))


@given(lists, st.integers(0, 4))
def test_the_head_of_the_ranking_is_shown_whatever_the_scale(scores, buffer) -> None:
    rule = ClusterGap(buffer=buffer)
    head = ranks(rule, scores)[0]
    assert head == [*range(1, len(head) + 1)]
    assert len(head) >= min(1 + buffer, len(scores))
    assert head == ranks(rule, [4 * x - 7 for x in scores])[0]


@given(st.lists(st.integers(0, 20).map(float), min_size=3, max_size=9, unique=True).map(sorted), st.integers(2, 4))
def test_no_other_partition_has_a_smaller_sum_of_squares(line, most) -> None:
    found = partitions(np.array(line), most)
    assert [len(bounds) + 1 for bounds in found] == [*range(2, min(most, len(line)) + 1)]
    for bounds in found:
        least = min(squares(line, other) for other in combinations(range(1, len(line)), len(bounds)))
        assert squares(line, tuple(bounds)) == pytest.approx(least, abs=1e-9)
        assert silhouette(np.array(line), bounds) == pytest.approx(plain_silhouette(line, bounds), abs=1e-6)
