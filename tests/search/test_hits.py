"""One order for every lane."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memlab.search.hits import HitsBuilder, topk, topk_candidates
from memlab.tables import check

coarse = st.lists(st.floats(-2, 2).map(lambda x: round(x, 2)) | st.floats(0, 3e-6), min_size=1, max_size=60)


@given(coarse, st.integers(1, 70), st.randoms())
def test_best_is_a_full_sort_cut(scores: list[float], depth: int, random: object) -> None:
    ids = list(range(len(scores)))
    random.shuffle(ids)  # type: ignore[attr-defined]
    got = topk(np.array(scores, np.float32), np.array(ids), depth).tolist()
    rounded = np.round(np.array(scores, np.float32).astype(float), 6)
    assert got == sorted(range(len(scores)), key=lambda i: (-rounded[i], ids[i]))[:depth]
    assert set(got) <= set(topk_candidates(np.array(scores, np.float32), depth).tolist())


def test_builder_ranks_from_one_within_query_and_lane() -> None:
    hits = HitsBuilder()
    hits.add("a:turn", 7, np.array([3, 1, 2]), np.array([.5, .5000001, .9]), 10)
    hits.add("b:turn", 7, np.array([3]), np.array([-1.0]), 10)
    hits.add("b:turn", 8, np.array([], np.int64), np.array([]), 10)
    assert check("hits", hits.frame()).rows() == [
        (7, "a:turn", 2, .9, 1), (7, "a:turn", 1, .5, 2), (7, "a:turn", 3, .5, 3), (7, "b:turn", 3, -1.0, 1)]


def test_builder_without_hits_gives_an_empty_table() -> None:
    assert check("hits", HitsBuilder().frame()).height == 0
