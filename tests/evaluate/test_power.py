from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from memlab.evaluate.power import detectable, fewest_wins, mcnemar_power, smallest_significant, t_power
from memlab.evaluate.statistics import mcnemar, sign_flip


@given(st.integers(0, 200), st.sampled_from([.05, .025, .05 / 3]))
def test_one_win_less_is_not_significant(discordant: int, alpha: float) -> None:
    wins = int(fewest_wins(np.array([discordant]), alpha)[0])
    if wins <= discordant:
        assert mcnemar(wins, discordant - wins) <= alpha
    if discordant:
        assert mcnemar(wins - 1, discordant - wins + 1) > alpha


def test_published_smallest_net_wins_at_500_questions() -> None:
    found = {d: smallest_significant(500, d, .05) for d in (5, 10, 20, 50, 100)}
    assert found == {5: None, 10: .016, 20: .02, 50: .032, 100: .044}


def test_mcnemar_power_equals_simulation() -> None:
    rng = np.random.default_rng(0)
    n, difference, discordance, alpha = 200, .06, .12, .05
    draws = rng.multinomial(n, [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance], 4000)
    pairs, times = np.unique(draws[:, :2], axis=0, return_counts=True)
    simulated = sum(t for (w, x), t in zip(pairs, times) if mcnemar(int(w), int(x)) <= alpha) / 4000
    assert mcnemar_power(n, difference, discordance, alpha) == pytest.approx(simulated, abs=.03)


def test_power_grows_with_the_difference_and_the_questions() -> None:
    assert mcnemar_power(500, .02, .1, .05) < mcnemar_power(500, .04, .1, .05) < mcnemar_power(1000, .04, .1, .05)
    assert mcnemar_power(0, .02, .1, .05) == 0
    assert mcnemar_power(500, 0.0, 0.0, .05) == 0


def test_t_power_equals_simulation() -> None:
    rng = np.random.default_rng(1)
    rejected = (stats.ttest_1samp(rng.normal(.4, 1, (3000, 40)), 0, axis=1).pvalue < .05).mean()
    assert t_power(40, .4, 1, .05) == pytest.approx(rejected, abs=.03)


def test_too_few_clusters_have_no_power_whatever_the_effect() -> None:
    assert t_power(6, 100.0, 1.0, .05 / 3) == 0  # the smallest p of 6 clusters is .031
    assert t_power(6, 100.0, 1.0, .05) == pytest.approx(1)
    assert sign_flip(np.ones(6)) == pytest.approx(2 / 64)
    assert t_power(1, 1.0, 1.0, .05) == 0
    assert t_power(10, .1, 0.0, .05) == 1


def test_detectable_is_found_in_four_of_five_runs() -> None:
    def power(d: float) -> float:
        return mcnemar_power(500, d, .1, .05)

    smallest = detectable(power, 1.0)
    assert smallest is not None
    assert power(smallest) == pytest.approx(.8, abs=.01)
    assert detectable(power, .01) is None
    assert detectable(power, 0.0) is None
