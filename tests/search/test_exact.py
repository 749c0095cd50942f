"""Exact search."""

from __future__ import annotations

import numpy as np
import pytest

from memlab.search.exact import Exact, Flat, Index
from memlab.search.hits import topk


def test_blocks_change_nothing() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((50, 8)).astype(np.float32)
    vectors[20:30] = vectors[3]  # ties across blocks
    queries, seen = rng.standard_normal((7, 8)).astype(np.float32), np.array([50, 0, 1, 22, 49, 50, 7])
    whole = vectors.astype(float) @ queries.T.astype(float)
    for block in (1, 4, 17, 1000):
        for i, (at, scores) in enumerate(Exact(vectors, block).search(queries, seen, 5)):
            order = at[topk(scores, at, 5)]
            assert order.tolist() == topk(whole[:seen[i], i], np.arange(seen[i]), 5).tolist()
            assert scores == pytest.approx(whole[at, i], abs=1e-5)
            assert len(set(at.tolist())) == len(at)


def test_flat_is_an_index_whose_device_is_no_identity() -> None:
    assert isinstance(Flat(), Index)
    assert Flat(device="cpu", block=3).identity() == Flat().identity()
    assert Flat().open(np.eye(2, dtype=np.float32), None).search(np.eye(2, dtype=np.float32)[:0],
                                                                 np.array([], np.int64), 3) == []
