from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.learn.probability.features import FEATURES
from memlab.learn.probability.model import FORMAT, VALUES, fit, load


def test_the_fit_is_at_the_minimum_of_its_loss() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)) * [1, 10, 0.1, 0] + 5  # the last is constant
    y = (rng.uniform(size=400) < 1 / (1 + np.exp(3 - x[:, 1] / 5))).astype(float)
    model = fit(x, y, l2=2.0)
    scaled = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)

    def loss(w: np.ndarray, b: float) -> float:
        p = 1 / (1 + np.exp(-(scaled @ w + b)))
        return -np.where(y > 0, np.log(p), np.log(1 - p)).sum() + w @ w

    best = loss(model.weights, model.bias)
    for step in rng.normal(scale=.05, size=(20, 4)):
        assert loss(model.weights + step, model.bias) > best - 1e-6
    assert loss(model.weights, model.bias + .05) > best < loss(model.weights, model.bias - .05)
    assert model.estimates(x) == pytest.approx(1 / (1 + np.exp(-(scaled @ model.weights + model.bias))), abs=1e-6)


def test_labels_that_separate_still_have_a_fit() -> None:
    x = np.linspace(-1, 1, 50)[:, None]
    model = fit(x, (x[:, 0] > 0).astype(float), l2=1e-3)
    assert np.isfinite(model.weights).all()
    assert ((model.estimates(x) > .5) == (x[:, 0] > 0)).all()


@pytest.mark.parametrize("labels", [[], [0.0, 0.0], [1.0, 1.0]])
def test_one_kind_of_label_is_refused(labels: list[float]) -> None:
    with pytest.raises(MemlabError, match="no ranked unit is evidence"):
        fit(np.zeros((len(labels), 2)), np.array(labels), l2=1.0)


ONES = [1.0] * len(FEATURES)
SAVED: dict[str, Any] = {
    "format": FORMAT, "depth": 20, "features": FEATURES, "mean": ONES, "scale": ONES, "weights": ONES, "bias": 0.0,
    "questions": 9, "prices": {name: {"thresholds": [0.9, 0.5], "tokens": [1.0, 2.0]} for name in VALUES}}


@pytest.mark.parametrize("changes", [{"scale": [0.0, *ONES[1:]]}, {"mean": [float("nan"), *ONES[1:]]},
                                     {"weights": [float("inf"), *ONES[1:]]}, {"bias": float("nan")}])
def test_a_saved_fit_has_possible_numbers(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "fit.json").write_text(json.dumps(SAVED))
    assert load(tmp_path / "fit.json").bias == 0.0
    (tmp_path / "fit.json").write_text(json.dumps(SAVED | changes))
    with pytest.raises(MemlabError, match="is not a probability fit: .*impossible number"):
        load(tmp_path / "fit.json")
