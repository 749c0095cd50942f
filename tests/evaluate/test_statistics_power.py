from __future__ import annotations

import numpy as np
import pytest

from memlab.evaluate.statistics import (
    Assumptions,
    grouped_mean,
    planned_detectable,
    planned_power,
    smallest_detectable,
    smallest_significant,
    t_power,
)

LOCOMO = np.array([197.0, 105, 193, 260, 158, 196])
"""Questions that count in the six conversations of the dev slice."""


def test_the_smallest_significant_difference_has_p_alpha() -> None:
    values, groups = np.random.default_rng(2).normal(size=60), np.repeat(np.arange(6), 10)
    made = grouped_mean(values, groups)
    shifted = values - values.mean() + smallest_significant(made.error, made.df, .05 / 3)
    assert grouped_mean(shifted, groups).p == pytest.approx(.05 / 3)


def test_the_smallest_detectable_difference_is_found_in_four_of_five_runs() -> None:
    smallest = smallest_detectable(.02, 4.7, .05)
    assert t_power(smallest, .02, 4.7, .05) == pytest.approx(.8)
    assert smallest > smallest_significant(.02, 4.7, .05)


def test_planned_power_equals_simulation_over_six_conversations() -> None:
    rng, given, difference, found, runs = np.random.default_rng(3), Assumptions(), .06, 0, 1500
    groups = np.repeat(np.arange(6), LOCOMO.astype(int))
    for _ in range(runs):
        effect = (difference + rng.normal(0, given.between, 6))[groups]
        draw = rng.random(len(groups))
        losses = np.where(draw > 1 - (given.discordance - effect) / 2, -1.0, 0.0)
        values = np.where(draw < (given.discordance + effect) / 2, 1.0, losses)
        made = grouped_mean(values, groups)
        found += made.p < .05 / 3 and made.value > 0
    power = planned_power(LOCOMO, difference, .05 / 3)
    assert power == pytest.approx(found / runs, abs=.06)
    assert power >= .75


def test_plans_know_what_cannot_be_shown() -> None:
    assert planned_power(np.array([300.0]), .1, .05) is None
    assert planned_detectable(np.array([300.0]), .05) is None
    assert planned_detectable(np.array([1.0, 1.0]), .001) is None
    smallest = planned_detectable(LOCOMO, .05)
    assert planned_power(LOCOMO, smallest, .05) >= .8 > planned_power(LOCOMO, smallest - .001, .05)
    assert planned_detectable(np.ones(1000), .05) < planned_detectable(np.ones(100), .05)
