from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.evaluate.intervals import bca, clustered, newcombe, student, wilson


@given(st.integers(1, 300), st.floats(0, 1))
def test_wilson_equals_scipy(n: int, share: float) -> None:
    hits = round(n * share)
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_wilson_of_nothing_is_undefined() -> None:
    assert wilson(0, 0) is None


def test_newcombe_gives_published_figures() -> None:
    # airway hyper-responsiveness, 21 children (Bentur et al.), as reported by Fagerland et al. 2014
    assert newcombe(1, 1, 7, 12) == pytest.approx((-.507, -.026), abs=.0005)
    low, high = newcombe(7, 1, 1, 12)
    assert low == pytest.approx(-high)
    assert newcombe(0, 0, 0, 0) is None


def test_arms_that_never_differ_still_have_a_width() -> None:
    low, high = newcombe(20, 0, 0, 0)
    assert low < 0 < high


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


def test_student_by_hand() -> None:
    low, high = student(np.array([1.0, 2.0, 3.0]))
    half = 4.302653 * 1 / np.sqrt(3)
    assert (low, high) == pytest.approx((2 - half, 2 + half))
    assert student(np.array([1.0])) is None


def test_clustered_interval_by_hand_and_wider_than_an_independent_one() -> None:
    values, clusters = np.array([1.0, 1.0, 0.0, 0.0, 1.0]), np.array([0, 0, 1, 1, 2])
    sums = np.array([.8, -1.2, .4])  # of value - .6, by cluster
    half = stats.t.ppf(.975, 2) * np.sqrt(3 / 2 * (sums**2).sum()) / 5
    assert clustered(values, clusters) == pytest.approx((.6 - half, .6 + half))
    assert clustered(values, np.zeros(5, int)) is None
    # clusters of one question each: the t-interval of the mean
    assert clustered(values, np.arange(5)) == pytest.approx(student(values))
