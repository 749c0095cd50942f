from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from memlab.learn.fits import Values
from memlab.learn.probability_model import FEATURES, PLAIN, READS, features, fit, fit_blend
from memlab.pipeline.tables import text_hash, texts_frame
from memlab.support.errors import MemlabError
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


@pytest.mark.parametrize("labels", [[], [0.0, 0.0], [1.0, 1.0]])
def test_one_kind_of_label_is_refused(labels: list[float]) -> None:
    with pytest.raises(MemlabError, match="no ranked unit is evidence"):
        fit(np.zeros((len(labels), 2)), np.array(labels), l2=1.0)


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


def test_a_missing_library_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    x, y = rows(0, 200)
    with pytest.raises(MemlabError, match=r"(?s)the blend needs LightGBM.*memlab\[learn\]"):
        fit_blend(x, y, 10.0, seed=0)
