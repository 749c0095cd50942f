"""Regressions, and saved fits of coverage and probability: their files and commands, and what may be wrong in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab import run
from memlab.commands.train import main as train
from memlab.learn import coverage, fits, probability, probability_model
from memlab.learn.fits import fit_regression
from memlab.learn.ranker.model import load
from memlab.learn.threshold import VALUES
from memlab.pipeline.stage import spec_digest
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.learn.worlds import world

KINDS: dict[str, Any] = {"coverage": (coverage.CoverageModel, coverage.LoadedCoverage, coverage.fit_tables),
                         "probability": (probability_model.ProbabilityModel, probability.LoadedProbability,
                                         probability.fit_tables)}


def saved(kind: str) -> dict[str, Any]:
    """A fit as its file holds it."""
    model = KINDS[kind][0]
    count = len(model.FEATURES)
    more = {"level": "turn"} if kind == "coverage" else {
        "kind": [], "prices": {name: {"thresholds": [0.9, 0.5], "tokens": [1.0, 2.0]} for name in VALUES}}
    return {"format": model.FORMAT, "depth": 20, "features": list(model.FEATURES), "mean": [1.0] * count,
            "scale": [1.0] * count, "weights": [1.0] * count, "bias": 0.0, "learnt": [], **more}


@pytest.mark.parametrize("l2", [2.0, 1e-3])
def test_the_fit_is_at_the_minimum_of_its_loss(l2: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 4)) * [1, 10, 0.1, 0] + 5  # the last is constant
    y = (rng.uniform(size=400) < 1 / (1 + np.exp(3 - x[:, 1] / 5))).astype(float)
    weight = rng.uniform(size=400)
    model = fit_regression(x, y, l2, weight)
    scaled = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0, x.std(axis=0), 1)

    def loss(w: np.ndarray, b: float) -> float:
        p = 1 / (1 + np.exp(-(scaled @ w + b)))
        return -(weight * np.where(y > 0, np.log(p), np.log(1 - p))).sum() + l2 / 2 * w @ w

    best = loss(model.weights, model.bias)
    for step in rng.normal(scale=.05, size=(20, 4)):
        assert loss(model.weights + step, model.bias) > best - 1e-6
    assert loss(model.weights, model.bias + .05) > best < loss(model.weights, model.bias - .05)
    expected = 1 / (1 + np.exp(-(scaled @ model.weights + model.bias)))
    assert model.estimates(x) == pytest.approx(expected, abs=1e-6)


def test_labels_of_one_kind_and_labels_that_separate_have_a_finite_fit() -> None:
    x = np.linspace(-1, 1, 50)[:, None]
    one, apart = fit_regression(x, np.ones(50), 1.0), fit_regression(x, (x[:, 0] > 0).astype(float), 1e-3)
    assert np.isfinite([*one.weights, one.bias, *apart.weights, apart.bias]).all()
    assert (one.estimates(x) > .99).all()
    assert ((apart.estimates(x) > .5) == (x[:, 0] > 0)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_fit_needs_no_gold_and_gives_the_same_estimates_wherever_it_lies(kind: str, tmp_path: Path) -> None:
    tables, (_, stage, fit_tables) = world(questions=40), KINDS[kind]
    model = fit_tables(tables, depth=12)
    for name in ("a.json", "b.json"):
        fits.save(model, tmp_path / name)
    one, other = (stage(path=tmp_path / name) for name in ("a.json", "b.json"))
    assert one.fits() == [model]
    assert not {"evidence", "gold", "ids"} & set(one.reads)
    assert spec_digest(one) == spec_digest(other)
    made = one.run(tables.only(one.reads), Store())["ranking"].filter(pl.col("rank") <= 12)
    assert made[kind].is_between(0, 1).all()
    assert len(model.learnt) == tables["evidence"]["question"].n_unique()
    assert one.number_seen(tables) == len(model.learnt)


@pytest.mark.parametrize(("kind", "changes", "message"), [
    *((kind, changes, message) for kind in KINDS for changes, message in (
        ({"format": "memlab-other-0"}, "made by another version"), ({"features": ["other"]}, "made by another version"),
        ({"bias": "x"}, "bias: .*valid number"), ({"weights": [1.0]}, "numbers each"), ({"more": 1}, "more"),
        ({"scale": 0.0}, "impossible number"), ({"mean": float("nan")}, "impossible number"),
        ({"weights": float("inf")}, "impossible number"), ({"bias": float("inf")}, "impossible number"))),
    ("probability", {"prices": {}}, "prices of unit, token and share"),
    ("probability", {"prices": {name: {"thresholds": [.9, .5], "tokens": [2.0, 1.0]} for name in VALUES}},
     "must not fall")])
def test_a_damaged_fit_is_refused_when_the_stage_is_made(kind: str, changes: dict[str, Any], message: str,
                                                         tmp_path: Path) -> None:
    content, stage = saved(kind), KINDS[kind][1]
    (tmp_path / "fit.json").write_text(json.dumps(content))
    stage(path=tmp_path / "fit.json")
    for name, value in changes.items():  # a number spoils the first of a list
        content[name] = [value, *content[name][1:]] if isinstance(content.get(name), list) and isinstance(
            value, float) else value
    (tmp_path / "fit.json").write_text(json.dumps(content))
    with pytest.raises(MemlabError, match=f"is not a {kind} fit: .*{message}"):
        stage(path=tmp_path / "fit.json")


def test_a_file_that_is_missing_cut_or_large_is_named_with_the_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                     ) -> None:
    for _, stage, _ in KINDS.values():
        with pytest.raises(MemlabError, match="No such file"):
            stage(path=tmp_path / "none.json")
    file = tmp_path / "fit.json"
    file.write_text('{"format": "memlab-ranker-1", "level": "turn", "depth": "deep"}')
    with pytest.raises(MemlabError, match=r"is not a ranking model: depth: .*integer"):
        load(file)
    file.write_text('{"format": "memlab')
    with pytest.raises(MemlabError, match="is not a ranking model"):
        load(file)
    monkeypatch.setattr(fits, "MAX_BYTES", 10)
    with pytest.raises(MemlabError, match="is too large for a ranking model"):
        load(file)


@pytest.mark.parametrize(("kind", "select", "columns"), [
    ("coverage", "calibrated", {"coverage"}), ("probability", "marginal", {"probability", "value", "shown_from"})])
def test_a_saved_fit_is_applied_by_the_command_that_names_it(kind: str, select: str, columns: set[str], tmp_path: Path
                                                             ) -> None:
    lives = ["data.lives=4", "data.questions=6", "data.sessions=8", "search/dense=none", f"store={tmp_path / 'store'}"]
    assert train([kind, f"file={tmp_path / 'fit.json'}", "l2=100", *lives]) == 0
    assert run.main([*lives, f"rank/select={select}", f"learn/{kind}=loaded", f"out={tmp_path}", "track=none",
                     f"learn.{kind}.path={tmp_path / 'fit.json'}", "name=transferred"]) == 0
    folder, = tmp_path.glob("single/*/transferred-*")
    assert columns <= set(pl.read_parquet(folder / "ranking.parquet").columns)
    assert train([kind, *lives]) == 2
