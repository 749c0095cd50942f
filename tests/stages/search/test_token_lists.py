"""Inverted lists that texts join and leave."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.search.centroids import InvertedLists, TokenCentroids
from memlab.stages.search.token_lists import TokenLists, TokenPostings
from memlab.store.token_vectors import TokenBlock, TokenVectors, make_block
from tests.examples import fewer

RNG = np.random.default_rng(0)
KEYS = RNG.integers(0, 2**63, (60, 2), np.uint64)
IDS = [RNG.integers(0, 12, RNG.integers(1, 7)) for _ in range(60)]
MATRICES = [(m := RNG.standard_normal((len(ids), 8)).astype(np.float32)) / np.linalg.norm(m, axis=1, keepdims=True)
            for ids in IDS]


def text_ids(rows: Iterable[int]) -> pl.Series:
    return pl.Series([f"{KEYS[row][0]:016x}{KEYS[row][1]:016x}" for row in rows])


def block() -> TokenBlock:
    return make_block(KEYS, IDS, MATRICES, "fp32")


def texts(rows: list[int]) -> TokenVectors:
    whole = block()
    return TokenVectors([whole], np.zeros(len(rows), np.int64), whole.starts[rows], np.diff(whole.starts)[rows])


def estimates(postings: TokenPostings, query: np.ndarray, probes: int) -> np.ndarray:
    return postings.estimates(query, probes)[:, postings.place]


def by_hand(centroids: TokenCentroids, rows: list[int], query: np.ndarray, probes: int) -> np.ndarray:
    """The product with the closest probed centroid that a token of the text is assigned to, or with the last probed."""
    products = query @ centroids.vectors.T
    floor = np.sort(products, axis=1)[:, -min(probes, products.shape[1])]
    out = np.empty((len(query), len(rows)), np.float32)
    for column, row in enumerate(rows):
        mine = products[:, centroids.nearest(MATRICES[row])].max(axis=1)
        out[:, column] = np.maximum(mine, floor)
    return out


@fewer(4)  # each example fills a memory and takes some out
@given(st.lists(st.lists(st.integers(0, 59), min_size=1, unique=True), min_size=1, max_size=5), st.integers(1, 9))
def test_estimates_are_those_by_hand_whatever_came_and_went(pools: list[list[int]], probes: int) -> None:
    query, lists = MATRICES[0][:3], TokenLists(9, seed=0)
    for rows in pools:
        postings = lists.of(texts(rows))
        expected = by_hand(postings.centroids, rows, query, probes)
        assert estimates(postings, query, probes) == pytest.approx(expected, abs=1e-6)


@fewer(4)  # each example fills a memory and takes some out
@given(st.lists(st.lists(st.integers(0, 59), min_size=1, unique=True), min_size=1, max_size=4))
def test_document_frequencies_count_memories_with_each_token(pools: list[list[int]]) -> None:
    lists, asked = TokenLists(4, seed=0), np.array([3, 11, 500])
    for rows in pools:
        postings = lists.of(texts(rows))
        memories = np.zeros(postings.size, np.int64)
        memories[postings.place] = 1 + np.arange(len(rows)) % 3  # memories may share a text
        expected = [sum(int(memories[place]) for place, row in zip(postings.place, rows) if token in IDS[row])
                    for token in asked]
        assert postings.document_frequencies(asked, memories).tolist() == expected


def test_texts_that_are_forgotten_leave_nothing() -> None:
    lists = TokenLists(9, seed=0)
    before = lists.of(texts(list(range(40))))
    expected = estimates(before, MATRICES[0], 5)
    lists.forget(text_ids(range(10)))
    assert len(lists) == 10
    assert len(lists._codes) == len(lists._ids) == sum(len(IDS[row]) for row in range(10))
    after = lists.of(texts([3, 9]))
    assert estimates(after, MATRICES[0], 5) == pytest.approx(expected[:, [3, 9]], abs=1e-6)
    assert np.array_equal(estimates(before, MATRICES[0], 5), expected)  # a search that had begun is not disturbed


def test_centroids_are_trained_anew_when_the_texts_have_grown_fourfold() -> None:
    lists = TokenLists(2, seed=0)
    first = lists.of(texts([0, 1])).centroids
    assert lists.of(texts([0, 1, 2])).centroids is first
    assert lists.assigned == sum(len(IDS[row]) for row in range(3))
    assert lists.of(texts(list(range(60)))).centroids is not first


def test_searches_side_by_side_see_their_own_texts() -> None:
    lists, pools = TokenLists(9, seed=0), [list(range(first, first + 30)) for first in range(0, 31, 3)]
    lists.of(texts(list(range(60))))

    def right(rows: list[int]) -> bool:
        lists.forget(text_ids(rows[:15]))
        postings = lists.of(texts(rows))
        return np.allclose(estimates(postings, MATRICES[0], 5), by_hand(postings.centroids, rows, MATRICES[0], 5),
                           atol=1e-6)

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(right, pools * 20))


def test_a_list_holds_each_text_once() -> None:
    lists = InvertedLists(np.array([1, 1, 0, 1]), np.array([4, 4, 2, 3]), 3)
    assert [part.tolist() for part in lists.texts(np.array([1, 0, 2]))] == [[3, 4, 2], [2, 1, 0]]
    assert len(lists) == 3
