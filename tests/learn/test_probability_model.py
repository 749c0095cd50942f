from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from memlab.errors import MemlabError
from memlab.learn.fits import Values
from memlab.learn.probability import CrossFitProbability
from memlab.learn.probability_model import (
    FEATURES,
    PLAIN,
    READS,
    UNIT,
    ProbabilityModel,
    features,
    fit,
    fit_blend,
    load,
)
from memlab.learn.threshold import VALUES
from memlab.tables import Tables, text_hash, texts_frame
from tests.learn.worlds import UNITS, world


def column(name: str, tables, depth: int = 10) -> tuple[pl.DataFrame, np.ndarray]:
    rows, matrix = features(tables.only(READS), depth)
    return rows, matrix[:, FEATURES.index(name)]


def test_one_row_for_each_unit_up_to_the_depth_and_all_numbers_finite() -> None:
    tables = world(questions=4)
    rows, matrix = features(tables.only(READS), 10)
    assert rows.height == 4 * 10 == len(matrix)
    assert matrix.shape[1] == len(FEATURES) == len(set(FEATURES))
    assert np.isfinite(matrix).all()
    assert not {"rank", "unit", "question"} & set(FEATURES)


def test_scores_are_compared_within_the_question() -> None:
    tables = world(questions=3)
    scores = tables["ranking"].filter(pl.col("question") == 1, pl.col("rank") <= 10)["score"].to_numpy()
    rows, z = column("z", tables)
    of_one = (rows["question"] == 1).to_numpy()
    expected = (scores - scores.mean()) / scores.std()
    assert z[of_one] == pytest.approx(expected)
    assert column("below_top", tables)[1][of_one] == pytest.approx(expected.max() - expected)
    assert column("gap", tables)[1][of_one][:-1] == pytest.approx(-np.diff(expected))
    assert column("top_gap", tables)[1][of_one] == pytest.approx(np.full(10, expected[0] - expected[1]))
    assert column("z_by_rank", tables)[1][of_one] == pytest.approx(expected * np.log(np.arange(1, 11)))


def test_other_scales_of_scores_and_names_of_lanes_change_nothing() -> None:
    tables = world(questions=3)
    scaled = tables["ranking"].with_columns(pl.col("score", "lane") * 7 + 3).rename({"lane": "other"})
    one, two = features(tables, 10)[1], features(tables.updated({"ranking": scaled}), 10)[1]
    assert two == pytest.approx(one)


def test_neighbours_are_units_of_the_same_session_one_or_two_turns_away() -> None:
    tables = world(questions=2)
    rows, z = column("z", tables, UNITS)
    at = {unit: value for unit, value in zip(rows["unit"], z)}
    for name, step in (("before_1", -1), ("before_2", -2), ("after_1", 1), ("after_2", 2)):
        for question, unit, value in zip(rows["question"], rows["unit"], column(name, tables, UNITS)[1]):
            near = unit + step if unit // 5 == (unit + step) // 5 else None
            lowest = z[(rows["question"] == question).to_numpy()].min()
            assert value == pytest.approx(lowest if near is None else at[near])


def test_lanes_that_did_not_find_a_unit_count_as_their_lowest() -> None:
    tables = world(questions=2)
    lane = pl.when(pl.col("rank") != 2).then("lane")
    rows, share = column("lanes_share", tables.updated({"ranking": tables["ranking"].with_columns(
        lane.alias("lane"), (-pl.col("rank")).cast(pl.Float64).alias("second"))}))
    assert share.tolist() == [0.5 if rank == 2 else 1.0 for rank in rows["rank"]]


def test_words_of_the_unit_and_of_the_question() -> None:
    tables = world(questions=2)
    texts = texts_frame(["Who is Ann?", "Is it 5?", "It is."])
    said = pl.when(pl.col("turn") == 0).then(pl.lit(text_hash("Is it 5?"))).otherwise(pl.lit(text_hash("It is.")))
    tables = tables.updated({"texts": texts, "turns": tables["turns"].with_columns(said.alias("text_id"))})
    rows, asks = column("question_mark", tables)
    assert asks.tolist() == [float(unit % 5 == 0) for unit in rows["unit"]] == column("digit", tables)[1].tolist()
    assert column("named", tables)[1].tolist() == [float(unit % 2 == 0) for unit in rows["unit"]]  # Ann, not Bo
    assert column("word_who", tables)[1].min() == 1
    assert column("word_when", tables)[1].max() == 0


def test_nothing_depends_on_the_order_of_rows_or_on_labels() -> None:
    tables = world(questions=3)
    rows, matrix = features(tables.only(READS), 10)
    turned = tables.only(READS).updated({name: tables[name].reverse() for name in ("ranking", "units", "turns")})
    again, other = features(turned, 10)
    assert again.equals(rows)
    assert other == pytest.approx(matrix)
    assert len(UNIT) == 21


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
    "format": ProbabilityModel.FORMAT, "depth": 20, "features": FEATURES, "mean": ONES, "scale": ONES, "weights": ONES,
    "bias": 0.0, "learnt": [], "kind": [],
    "prices": {name: {"thresholds": [0.9, 0.5], "tokens": [1.0, 2.0]} for name in VALUES}}


@pytest.mark.parametrize("changes", [{"scale": [0.0, *ONES[1:]]}, {"mean": [float("nan"), *ONES[1:]]},
                                     {"weights": [float("inf"), *ONES[1:]]}, {"bias": float("nan")}])
def test_a_saved_fit_has_possible_numbers(tmp_path: Path, changes: dict[str, Any]) -> None:
    (tmp_path / "fit.json").write_text(json.dumps(SAVED))
    assert load(tmp_path / "fit.json").bias == 0.0
    (tmp_path / "fit.json").write_text(json.dumps(SAVED | changes))
    with pytest.raises(MemlabError, match="is not a probability fit: .*impossible number"):
        load(tmp_path / "fit.json")


pytest.importorskip("lightgbm")


def rows(seed: int, n: int = 4000) -> tuple[Values, Values]:
    """Features and labels; the chance depends on whether two features have the same sign."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, len(FEATURES)))
    return x, (rng.uniform(size=n) < expit(2 * np.sign(x[:, 0] * x[:, 1]) - 1)).astype(float)


def loss(p: Values, y: Values) -> float:
    return float(-(y * np.log(p) + (1 - y) * np.log(1 - p)).mean())


def test_log_odds_are_the_mean_of_both_models() -> None:
    x, y = rows(0, 600)
    model = fit_blend(x, y, 10.0, seed=0)
    trees = logit(model.trees.predict(x[:, :PLAIN]))
    assert logit(model.estimates(x)) == pytest.approx((logit(fit(x, y, 10.0).estimates(x)) + trees) / 2, abs=1e-5)


@pytest.mark.slow
def test_trees_see_what_a_regression_cannot_and_a_fit_is_repeated_exactly() -> None:
    x, y = rows(0)
    new, held = rows(1)
    model = fit_blend(x, y, 10.0, seed=0)
    assert loss(model.estimates(new), held) < loss(fit(x, y, 10.0).estimates(new), held) - .05
    assert (model.estimates(new) == fit_blend(x, y, 10.0, seed=0).estimates(new)).all()
    assert (model.estimates(new) != fit_blend(x, y, 10.0, seed=1).estimates(new)).any()


def test_a_regression_that_is_certain_does_not_decide_alone() -> None:
    x, y = rows(0, 600)
    model = fit_blend(x, y, 10.0, seed=0)
    assert model.regression.estimates(x * 1e4).max() == 1
    assert 0 < model.estimates(x * 1e4).min() < model.estimates(x * 1e4).max() < 1


def test_a_missing_library_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    x, y = rows(0, 200)
    with pytest.raises(MemlabError, match=r"(?s)the blend needs LightGBM.*memlab\[learn\]"):
        fit_blend(x, y, 10.0, seed=0)


def valued(tables: Tables) -> pl.DataFrame:
    stage = CrossFitProbability(depth=12, model="blend")
    return stage.value_units(tables.only(stage.reads), "share", 1).sort("question", "rank")


@pytest.mark.slow
def test_a_questions_own_label_changes_neither_its_probability_nor_its_threshold() -> None:
    tables = world(questions=60)
    mine = pl.col("question") == tables["evidence"]["question"].min()
    moved = tables["evidence"].with_columns(pl.when(mine).then((pl.col("turn") + 1) % 5).otherwise("turn")
                                            .cast(pl.Int32).alias("turn"))
    before, after = valued(tables), valued(tables.updated({"evidence": moved}))
    assert after.filter(mine).equals(before.filter(mine))
    assert not after.equals(before)
