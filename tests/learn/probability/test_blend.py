from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from memlab.errors import MemlabError
from memlab.learn.probability.blend import PLAIN, fit_blend
from memlab.learn.probability.features import FEATURES
from memlab.learn.probability.model import fit
from memlab.learn.probability.stage import CrossFitProbability
from memlab.learn.probability.threshold import Values
from memlab.tables import Tables
from tests.learn.probability.worlds import world

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
    return stage.valued(tables.only(stage.reads), "share", 1).sort("question", "rank")


@pytest.mark.slow
def test_a_questions_own_label_changes_neither_its_probability_nor_its_threshold() -> None:
    tables = world(questions=60)
    mine = pl.col("question") == tables["evidence"]["question"].min()
    moved = tables["evidence"].with_columns(pl.when(mine).then((pl.col("turn") + 1) % 5).otherwise("turn")
                                            .cast(pl.Int32).alias("turn"))
    before, after = valued(tables), valued(tables.updated({"evidence": moved}))
    assert after.filter(mine).equals(before.filter(mine))
    assert not after.equals(before)
