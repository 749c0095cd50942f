"""Certainty of questions with and without evidence, against scipy and by hand."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy

from memlab.evaluate.certainty import certainty, nothing_there
from memlab.evaluate.statistics import auroc_parts
from memlab.pipeline.tables import Tables, empty


def test_the_area_is_that_of_mann_whitney_and_its_spread_that_of_new_samples() -> None:
    rng = np.random.default_rng(1)
    positive = np.arange(80) < 30
    scores = rng.normal(size=(1000, 80)).round(1) + positive
    parts = np.array([auroc_parts(one, positive) for one in scores])
    u = scipy.stats.mannwhitneyu(scores[0, :30], scores[0, 30:]).statistic
    assert parts[0].mean() == pytest.approx(u / (30 * 50))
    assert (parts.std(axis=1) / 80 ** .5).mean() == pytest.approx(parts.mean(axis=1).std(), rel=.08)


@pytest.fixture
def world(make_world) -> Tables:
    tables = make_world({0: [["user"] * 4]}, {q: [(0, 0)] for q in range(4)}, {q: [q, 0] for q in range(6)},
                        abstain=(3, 4, 5), unscored=(4, 5))
    score = pl.Series([.9, .1, .4, .1, .8, .1, .7, .1, .5, .1, .2, .1])
    kinds = tables["gold"].with_columns(category=pl.when(pl.col("question") == 3).then(pl.lit("adversarial")).otherwise(
        "category"))
    return tables.updated({"ranking": tables["ranking"].with_columns(score=score), "gold": kinds})


def test_adversarial_questions_count_on_neither_side(world: Tables) -> None:
    rows = nothing_there(world)
    assert rows["certainty"].to_list() == [.9, .4, .8, .7, .5, .2]
    assert (rows["nothing/auroc"].mean(), rows["nothing/auroc"].count()) == (pytest.approx(5 / 6), 5)
    assert rows["nothing/refused@5"].to_list() == [None, None, None, None, 0, 1]  # .4 is the lowest that is answered


def test_certainty_is_the_largest_probability_else_the_best_raw_score_of_the_first_search(world: Tables) -> None:
    likely = world["ranking"].with_columns(probability=pl.Series([.3, .6, *[None] * 10], dtype=pl.Float64))
    assert certainty(world.updated({"ranking": likely})).to_list() == [.6] * 6  # unknown ones are as low as the lowest
    raw = world["ranking"].with_columns(pl.lit(9.0).alias("lexical:turn"), pl.lit(.2).alias("dense:turn"))
    assert certainty(world.updated({"ranking": raw}))[0] == .2
    assert nothing_there(world.updated({"ranking": empty("ranking")}))["certainty"].to_list() == [0] * 6
