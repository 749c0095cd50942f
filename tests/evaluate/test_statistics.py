from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, stats

from memlab.evaluate import statistics


def test_sign_flip_is_exact_for_few_and_equals_a_walk_over_all_signs() -> None:
    values = np.array([.5, -.2, .3, .3, .1])
    sums = [sum(s * v for s, v in zip(signs, values)) for signs in product((1, -1), repeat=5)]
    expected = np.mean([abs(x) >= abs(values.sum()) - 1e-12 for x in sums])
    assert statistics.sign_flip(values) == pytest.approx(expected)
    assert statistics.sign_flip(np.append(values, [0.0] * 500)) == pytest.approx(expected)
    assert statistics.sign_flip(np.zeros(4)) == 1
    assert statistics.sign_flip(np.array([])) == 1


def test_sign_flip_equals_scipy() -> None:
    rng = np.random.default_rng(4)
    few, many = rng.normal(.3, 1, 10), rng.normal(.1, 1, 200)

    def scipy_p(values: np.ndarray) -> float:
        return stats.permutation_test((values,), lambda x, axis: x.mean(axis=axis), permutation_type="samples",
                                      n_resamples=9999, vectorized=True, rng=np.random.default_rng(0)).pvalue

    assert statistics.sign_flip(few) == pytest.approx(scipy_p(few))
    assert statistics.sign_flip(many) == pytest.approx(scipy_p(many), abs=.02)
    assert statistics.sign_flip(many, seed=1) == statistics.sign_flip(many, seed=1)
    assert statistics.sign_flip(np.ones(60)) == 1 / 10_000  # random flips never prove that p is 0


def test_sign_flip_on_0_1_differences_is_mcnemar() -> None:
    assert statistics.sign_flip(np.array([1.0] * 9 + [-1.0] + [0.0] * 90)) == pytest.approx(2 * (1 + 10) / 1024)


def test_holm_by_hand() -> None:
    assert statistics.holm([.04, .01, .03, .005]) == pytest.approx([.06, .03, .06, .02])
    assert statistics.holm([.9, .8]) == [1, 1]
    assert statistics.holm([]) == []


def by_matrices(values: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """CR2 error and Bell-McCaffrey degrees of freedom of an intercept, from their definition by matrices."""
    n, names = len(values), np.unique(groups)
    residual_maker = np.eye(n) - np.ones((n, n)) / n
    residuals, columns, total = residual_maker @ values, [], 0.0
    for name in names:
        inside = groups == name
        block = residual_maker[np.ix_(inside, inside)]
        adjusted = linalg.fractional_matrix_power(block, -.5).real @ np.ones(inside.sum()) / n
        total += float(adjusted @ residuals[inside]) ** 2
        columns.append(residual_maker[:, inside] @ adjusted)
    products = np.array(columns) @ np.array(columns).T
    return float(np.sqrt(total)), float(np.trace(products) ** 2 / (products**2).sum())


def test_error_and_degrees_of_freedom_follow_their_definition() -> None:
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1, 2, 3, 4, 5], [40, 25, 30, 12, 8, 33])
    values = rng.normal(.1, 1, len(groups)) + rng.normal(0, .3, 6)[groups]
    made = statistics.grouped_mean(values, groups)
    error, df = by_matrices(values, groups)
    assert made.value == pytest.approx(values.mean())
    assert (made.error, made.df) == (pytest.approx(error), pytest.approx(df))


def test_groups_of_one_are_student_and_equal_groups_student_over_their_means() -> None:
    values = np.random.default_rng(1).normal(.3, 1, 60)
    for groups, units in ((np.arange(60), values), (np.repeat(np.arange(6), 10), values.reshape(6, 10).mean(axis=1))):
        made, expected = statistics.grouped_mean(values, groups), stats.ttest_1samp(units, 0)
        assert made.p == pytest.approx(expected.pvalue)
        assert made.df == pytest.approx(len(units) - 1)
        assert made.interval() == pytest.approx(tuple(expected.confidence_interval()))


def test_what_cannot_be_tested() -> None:
    assert statistics.wilson(0, 0) is None
    alone = statistics.grouped_mean(np.array([.1, .5]), np.zeros(2, int))
    assert (alone.error, alone.p, alone.interval()) == (None, None, None)
    assert statistics.grouped_mean(np.zeros(4), np.arange(4)).p == 1
    constant = statistics.grouped_mean(np.full(7, .1), np.arange(7))  # rounding is no spread
    assert (constant.error, constant.p, constant.interval()) == (0, None, None)
    with pytest.raises(ValueError, match="at least one"):
        statistics.grouped_mean(np.array([]), np.array([]))


def test_group_sums_do_not_depend_on_order() -> None:
    values, groups = np.array([1e16, 1.0, -1e16, 3.0]), np.array([4, 4, 4, 1])
    assert statistics.group_sums(values, groups).tolist() == [3, 1]
    assert statistics.group_sums(values[::-1], groups[::-1]).tolist() == [3, 1]


@given(st.integers(1, 300), st.floats(0, 1))
def test_wilson_equals_scipy(n: int, share: float) -> None:
    hits = round(n * share)
    expected = stats.binomtest(hits, n).proportion_ci(method="wilson")
    assert statistics.wilson(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_bca_equals_scipy_with_the_same_seed() -> None:
    rng = np.random.default_rng(1)
    for values in (rng.exponential(size=40), rng.normal(3, 1, 25)):
        expected = stats.bootstrap((values,), np.mean, method="BCa", rng=np.random.default_rng(7)).confidence_interval
        assert statistics.bca(values[:, None], seed=7)[0] == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_bca_of_many_columns_is_that_of_each() -> None:
    columns = np.random.default_rng(2).random((30, 3))
    together = statistics.bca(columns, seed=3)
    for j in range(3):
        assert together[j] == pytest.approx(statistics.bca(columns[:, [j]], seed=3)[0])


def test_bca_degenerate_cases() -> None:
    assert statistics.bca(np.ones((5, 1))) == [(1, 1)]
    assert statistics.bca(np.full((7, 1), .1)) == [(pytest.approx(.1), pytest.approx(.1))]
    assert statistics.bca(np.ones((1, 2))) == [None, None]
    low, high = statistics.bca(np.array([[0.0]] * 99 + [[1.0]]))[0]  # a single difference
    assert 0 <= low < .01 < high < .1


LOCOMO = np.array([197.0, 105, 193, 260, 158, 196])
"""Questions that count in the six conversations of the dev slice."""


def test_the_smallest_significant_difference_has_p_alpha() -> None:
    values, groups = np.random.default_rng(2).normal(size=60), np.repeat(np.arange(6), 10)
    made = statistics.grouped_mean(values, groups)
    shifted = values - values.mean() + statistics.smallest_significant(made.error, made.df, .05 / 3)
    assert statistics.grouped_mean(shifted, groups).p == pytest.approx(.05 / 3)


def test_the_smallest_detectable_difference_is_found_in_four_of_five_runs() -> None:
    smallest = statistics.smallest_detectable(.02, 4.7, .05)
    assert statistics.t_power(smallest, .02, 4.7, .05) == pytest.approx(.8)
    assert smallest > statistics.smallest_significant(.02, 4.7, .05)


def test_planned_power_equals_simulation_over_six_conversations() -> None:
    rng, given, difference, found, runs = np.random.default_rng(3), statistics.Assumptions(), .06, 0, 1500
    groups = np.repeat(np.arange(6), LOCOMO.astype(int))
    for _ in range(runs):
        effect = (difference + rng.normal(0, given.between, 6))[groups]
        draw = rng.random(len(groups))
        losses = np.where(draw > 1 - (given.discordance - effect) / 2, -1.0, 0.0)
        values = np.where(draw < (given.discordance + effect) / 2, 1.0, losses)
        made = statistics.grouped_mean(values, groups)
        found += made.p < .05 / 3 and made.value > 0
    power = statistics.planned_power(LOCOMO, difference, .05 / 3)
    assert power == pytest.approx(found / runs, abs=.06)
    assert power >= .75


def test_plans_know_what_cannot_be_shown() -> None:
    assert statistics.planned_power(np.array([300.0]), .1, .05) is None
    assert statistics.planned_detectable(np.array([300.0]), .05) is None
    assert statistics.planned_detectable(np.array([1.0, 1.0]), .001) is None
    smallest = statistics.planned_detectable(LOCOMO, .05)
    below, reached = (statistics.planned_power(LOCOMO, difference, .05) for difference in (smallest - .001, smallest))
    assert below < .8 <= reached
    assert statistics.planned_detectable(np.ones(1000), .05) < statistics.planned_detectable(np.ones(100), .05)
