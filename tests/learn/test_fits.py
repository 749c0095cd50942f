from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.learn import fits
from memlab.learn.fits import fit_regression
from memlab.learn.ranker.model import load


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), (rng.uniform(size=60) < .4).astype(float)
    x[:30], y[:30] = x[30:], y[30:]  # each row twice: the mean and the scale are those of one half
    twice, weighted = fit_regression(x, y, 2.0), fit_regression(x[30:], y[30:], 2.0, np.full(30, 2.0))
    assert weighted.weights == pytest.approx(twice.weights, abs=1e-6)
    assert weighted.bias == pytest.approx(twice.bias, abs=1e-6)
    assert fit_regression(x[30:], y[30:], 2.0).weights != pytest.approx(twice.weights, abs=1e-3)


def test_labels_of_one_kind_have_a_finite_fit() -> None:
    fitted = fit_regression(np.arange(12.0).reshape(6, 2), np.ones(6), 1.0)
    assert np.isfinite([*fitted.weights, fitted.bias]).all()
    assert (fitted.estimates(np.zeros((1, 2))) > .99).all()


def test_a_bin_has_its_mean_estimate_and_outcome() -> None:
    pairs = pl.DataFrame({"estimate": [.1, .3, .9, 1.0], "outcome": [0.0, 1.0, 1.0, 1.0]})
    assert fits.reliability(pairs, 2).rows() == [
        (0.0, .5, 2, pytest.approx(.2), .5), (.5, 1.0, 2, pytest.approx(.95), 1.0)]


def test_the_place_of_what_is_wrong_in_a_file_is_named_and_a_large_file_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "fit.json"
    file.write_text('{"format": "memlab-ranker-1", "level": "turn", "depth": "deep"}')
    with pytest.raises(MemlabError, match=r"is not a ranking model: depth: .*integer"):
        load(file)
    monkeypatch.setattr(fits, "MAX_BYTES", 10)
    with pytest.raises(MemlabError, match="is too large for a ranking model"):
        load(file)
