"""One order for every lane."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import check
from memlab.stages.search.hits import HitsBuilder, digits_of, topk, topk_candidates

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


class Halves:
    def __init__(self, **identity: object) -> None:
        self.identity = lambda: identity


def test_scores_are_rounded_to_what_the_number_format_holds() -> None:
    """Half-precision vectors depend on the batch that they were made in: such differences order nothing."""
    assert digits_of(Halves(dtype="fp32")) == digits_of(Halves()) == digits_of(Halves(embedder={})) == 6
    assert digits_of(Halves(dtype="fp16")) == digits_of(Halves(embedder={"dtype": "fp16"})) == 3
    assert digits_of(Halves(dtype="bf16")) == 2
    one, other = HitsBuilder(digits=3), HitsBuilder(digits=3)
    one.add("a", 1, np.array([5, 6]), np.array([.6613, .6611]), 1)  # the same texts in two shards
    other.add("a", 1, np.array([5, 6]), np.array([.6611, .6613]), 1)
    assert one.frame().rows() == other.frame().rows() == [(1, "a", 5, .661, 1)]


def test_the_floor_and_the_cut_use_the_same_rounding() -> None:
    hits = HitsBuilder(floor=.5, digits=2)
    hits.add("a", 1, np.array([3, 2, 1]), np.array([.499, .496, .4]), 1)
    assert hits.frame().rows() == [(1, "a", 2, .5, 1)]
