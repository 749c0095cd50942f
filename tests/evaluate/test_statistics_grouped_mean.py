from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import linalg, stats

from memlab.evaluate.statistics import group_sums, grouped_mean

tables = st.lists(st.tuples(st.sampled_from([-1.0, -.5, 0.0, .25, 1.0]), st.integers(0, 5)), min_size=2, max_size=40)


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
    made = grouped_mean(values, groups)
    error, df = by_matrices(values, groups)
    assert made.value == pytest.approx(values.mean())
    assert (made.error, made.df) == (pytest.approx(error), pytest.approx(df))


def test_groups_of_one_are_student_and_equal_groups_student_over_their_means() -> None:
    values = np.random.default_rng(1).normal(.3, 1, 60)
    for groups, units in ((np.arange(60), values), (np.repeat(np.arange(6), 10), values.reshape(6, 10).mean(axis=1))):
        made, expected = grouped_mean(values, groups), stats.ttest_1samp(units, 0)
        assert made.p == pytest.approx(expected.pvalue)
        assert made.df == pytest.approx(len(units) - 1)
        assert made.interval() == pytest.approx(tuple(expected.confidence_interval()))


@given(tables)
def test_p_and_the_interval_never_contradict_each_other(rows: list[tuple[float, int]]) -> None:
    values, groups = (np.array(column) for column in zip(*rows))
    made = grouped_mean(values, groups)
    p, interval = made.p, made.interval()
    if p is None or interval is None:
        assert made.error is None or made.error == 0
    else:
        assert (p < .05) == (interval[0] > 0 or interval[1] < 0)
        assert interval[0] <= made.value <= interval[1]


@given(tables, st.randoms())
def test_the_order_of_values_and_the_names_of_groups_do_not_matter(rows: list[tuple[float, int]], random) -> None:
    shuffled = random.sample(rows, len(rows))
    one, two = (grouped_mean(*map(np.array, zip(*part))) for part in (rows, shuffled))
    assert one == two
    renamed = grouped_mean(np.array([v for v, _ in rows]), np.array([100 - g for _, g in rows]))
    assert renamed.p == pytest.approx(one.p, nan_ok=True) if one.p is not None else renamed.p is None


def test_what_cannot_be_tested() -> None:
    alone = grouped_mean(np.array([.1, .5]), np.zeros(2, int))
    assert (alone.error, alone.p, alone.interval()) == (None, None, None)
    assert grouped_mean(np.zeros(4), np.arange(4)).p == 1
    constant = grouped_mean(np.full(7, .1), np.arange(7))  # rounding is no spread
    assert (constant.error, constant.p, constant.interval()) == (0, None, None)
    with pytest.raises(ValueError, match="at least one"):
        grouped_mean(np.array([]), np.array([]))


def test_group_sums_do_not_depend_on_order() -> None:
    values, groups = np.array([1e16, 1.0, -1e16, 3.0]), np.array([4, 4, 4, 1])
    assert group_sums(values, groups).tolist() == [3, 1]
    assert group_sums(values[::-1], groups[::-1]).tolist() == [3, 1]
