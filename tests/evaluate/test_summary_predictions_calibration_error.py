from __future__ import annotations

import pytest

from memlab.evaluate.summary import calibration_error, complete_bins


def test_the_mean_over_cases_by_hand() -> None:
    bins = [{"estimated": 0.1, "observed": 0.2, "n": 8}, {"estimated": 0.9, "observed": 0.4, "n": 2}]
    assert calibration_error(bins) == pytest.approx((8 * 0.1 + 2 * 0.5) / 10)
    assert calibration_error([{"estimated": 0.3, "observed": 0.3, "n": 5}]) == 0


def test_bins_without_numbers_are_left_out() -> None:
    bins = [{"estimated": 0.1}, None, {"estimated": "x", "observed": 0.2}, {"estimated": 0.5, "observed": 0.7}]
    assert complete_bins(bins) == bins[3:]
    assert calibration_error(bins) == pytest.approx(0.2)
    assert calibration_error([]) is None
