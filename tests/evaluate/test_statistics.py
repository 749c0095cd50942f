from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.evaluate.statistics import holm, sign_flip


def test_sign_flip_is_exact_for_few_and_equals_a_walk_over_all_signs() -> None:
    values = np.array([.5, -.2, .3, .3, .1])
    sums = [sum(s * v for s, v in zip(signs, values)) for signs in product((1, -1), repeat=5)]
    expected = np.mean([abs(x) >= abs(values.sum()) - 1e-12 for x in sums])
    assert sign_flip(values) == pytest.approx(expected)
    assert sign_flip(np.append(values, [0.0] * 500)) == pytest.approx(expected)
    assert sign_flip(np.zeros(4)) == 1
    assert sign_flip(np.array([])) == 1


def test_sign_flip_equals_scipy() -> None:
    rng = np.random.default_rng(4)
    few, many = rng.normal(.3, 1, 10), rng.normal(.1, 1, 200)

    def scipy_p(values: np.ndarray) -> float:
        return stats.permutation_test((values,), lambda x, axis: x.mean(axis=axis), permutation_type="samples",
                                      n_resamples=9999, vectorized=True, rng=np.random.default_rng(0)).pvalue

    assert sign_flip(few) == pytest.approx(scipy_p(few))
    assert sign_flip(many) == pytest.approx(scipy_p(many), abs=.02)
    assert sign_flip(many, seed=1) == sign_flip(many, seed=1)
    assert sign_flip(np.ones(60)) == 1 / 10_000  # random flips never prove that p is 0


def test_sign_flip_on_0_1_differences_is_mcnemar() -> None:
    assert sign_flip(np.array([1.0] * 9 + [-1.0] + [0.0] * 90)) == pytest.approx(2 * (1 + 10) / 1024)


def test_holm_by_hand() -> None:
    assert holm([.04, .01, .03, .005]) == pytest.approx([.06, .03, .06, .02])
    assert holm([.9, .8]) == [1, 1]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_keeps_the_order_and_only_raises(p: list[float]) -> None:
    adjusted = holm(p)
    assert all(a >= b for a, b in zip(adjusted, p))
    assert all(a <= min(1, b * len(p)) + 1e-12 for a, b in zip(adjusted, p))
    ordered = [a for _, a in sorted(zip(p, adjusted))]
    assert ordered == sorted(ordered)
