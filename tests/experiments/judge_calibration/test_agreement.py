"""Sensitivity, specificity and kappa of verdicts by hand."""

from __future__ import annotations

import numpy as np
import pytest
from judge_calibration.agreement import Pair, kappa, kappa_of, sensitivity, specificity

pytestmark = pytest.mark.nightly


def test_kappa_by_hand() -> None:
    # 45 agree yes, 15 and 25 disagree, 15 agree no: observed .6, expected .6*.7 + .4*.3 = .54
    assert float(kappa(np.array([45, 15, 25, 15]))) == pytest.approx(0.06 / 0.46)
    assert float(kappa(np.array([30, 0, 0, 70]))) == 1.0
    assert float(kappa(np.array([0, 50, 50, 0]))) == -1.0
    assert np.isnan(kappa(np.array([10, 0, 0, 0])))


def test_shares_and_interval() -> None:
    pairs = [Pair(i, i % 2 == 0, i % 2 == 0 or i % 10 == 1) for i in range(100)]
    assert sensitivity(pairs)["value"] == 1.0
    assert specificity(pairs)["value"] == pytest.approx(0.8)
    found = kappa_of(pairs)
    assert found["value"] == pytest.approx(0.8)  # observed .9, expected .5
    low, high = found["low"], found["high"]
    assert low is not None
    assert high is not None
    assert 0.6 < low < 0.8 < high < 0.95
    assert kappa_of(pairs) == found
    one_question = kappa_of([p._replace(group=0) for p in pairs])
    assert (one_question["value"], one_question["low"]) == (found["value"], None)  # a single question has no spread
    wider = kappa_of([p._replace(group=p.group // 10) for p in pairs])
    assert wider["value"] == found["value"]
    assert kappa_of([])["value"] is None
    assert kappa_of([Pair(0, True, True)] * 3)["value"] is None
