from __future__ import annotations

import dataclasses

import pytest

from memlab.learn.ranker.importances import importances
from tests.learn.ranker.worlds import RECIPE, learnable


def test_gains_are_summed_over_the_fits() -> None:
    fits = learnable().crossfit(20, RECIPE)
    expected = sum(model.gains[model.features.index("good")] for _, model in fits)
    table = importances(fits)
    assert table["feature"][0] == "good"
    assert table["gain"][0] == pytest.approx(expected)
    assert table["gain"].to_list() == sorted(table["gain"], reverse=True)
    none = dataclasses.replace(fits[0][1], gains=(0.0, 3.0))
    assert importances([(fits[0][0], none)]).rows() == [("noise", 3.0)]
