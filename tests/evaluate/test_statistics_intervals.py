from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.evaluate.statistics import bca, wilson


@given(st.integers(1, 300), st.floats(0, 1))
def test_wilson_equals_scipy(n: int, share: float) -> None:
    hits = round(n * share)
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing_is_undefined() -> None:
    assert wilson(0, 0) is None


def test_bca_equals_scipy_with_the_same_seed() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.exponential(size=40), rng.normal(3, 1, 25)):
        expected = stats.bootstrap((values,), np.mean, method="BCa", rng=np.random.default_rng(7)).confidence_interval
        assert bca(values[:, None], seed=7)[0] == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_bca_of_many_columns_is_that_of_each() -> None:
    columns = np.random.default_rng(2).random((30, 3))
    together = bca(columns, seed=3)
    for j in range(3):
        assert together[j] == pytest.approx(bca(columns[:, [j]], seed=3)[0])


def test_bca_degenerate_cases() -> None:
    assert bca(np.ones((5, 1))) == [(1, 1)]
    assert bca(np.full((7, 1), .1)) == [(pytest.approx(.1), pytest.approx(.1))]
    assert bca(np.ones((1, 2))) == [None, None]
    low, high = bca(np.array([[0.0]] * 99 + [[1.0]]))[0]  # a single difference
    assert 0 <= low < .01 < high < .1
