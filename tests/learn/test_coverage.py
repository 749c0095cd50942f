"""The learned K: the estimate and the cut as one stage."""

from __future__ import annotations

import math

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.learn.coverage import FEATURES, CrossFitCoverage, LearnedK, features, labels, reliability
from memlab.pipeline.tables import Tables, frame
from memlab.stages.rank.select import Fixed
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.learn.worlds import world

STORE = Store()


def ranked_pair():
    classes = frame("classes", {"question": [4, 4, 2], "class": ["counting", "factual", "factual"]})
    units = frame("units", {"unit": [0, 1, 2], "corpus": [0] * 3, "session": [0, 0, 1], "turns": [[0], [1], [0]],
                            "level": ["turn"] * 3})
    ranking = frame("ranking", {
        "question": [4, 4, 4, 2], "unit": [0, 1, 2, 2], "score": [3.0, 1.0, -1.0, 5.0], "rank": [1, 2, 3, 1],
        "selected": [False] * 4, "a": [3.0, 1.0, 2.0, 1.0], "b": [None, 2.0, None, None], "tokens": [1.0] * 4})
    return ranking, units, classes


def test_features_by_hand() -> None:
    table = features(*ranked_pair(), depth=5)
    assert table.columns == ["question", "rank", *FEATURES]
    two = table.filter(question=4)
    z = [2 / math.sqrt(8 / 3), 0, -2 / math.sqrt(8 / 3)]
    mass = [math.exp(x) / sum(map(math.exp, z)) for x in z]
    expected = {
        "log_k": [0, math.log(2), math.log(3)], "log_units": [math.log(3)] * 3, "score": z, "below_top": [0, .5, 1],
        "gap": [.5, .5, 0], "top_gap": [.5] * 3, "mass": [mass[0], mass[0] + mass[1], 1],
        "entropy": [-sum(m * math.log(m) for m in mass) / math.log(3)] * 3, "sessions": [1, 1 / 2, 2 / 3],
        # lane a orders units 0, 2, 1: shares 1 of 1, 1 of 2, 3 of 3; lane b knows unit 1 alone: 0, 1 of 2, 1 of 3
        "agreement": [(1 + 0) / 2, (1 / 2 + 1 / 2) / 2, (1 + 1 / 3) / 2], "is_counting": [1] * 3,
        "is_counting_depth": [0, math.log(2), math.log(3)], "is_factual": [0] * 3,
    }
    for name, values in expected.items():
        assert two[name].to_list() == pytest.approx(values), name


def test_features_are_finite_and_independent_of_the_scale_of_scores() -> None:
    ranking, units, classes = ranked_pair()
    flat = features(ranking.with_columns(score=pl.lit(1.0)), units, classes, depth=2)
    assert flat.select(pl.all().is_finite().all()).row(0) == (True,) * flat.width
    assert flat["rank"].max() == 2
    asked = features(ranking, units, classes, depth=3)
    moved = features(ranking.with_columns(pl.col("score") * 7 - 3), units, classes, depth=3)
    assert asked.to_numpy() == pytest.approx(moved.to_numpy())
    # a question over several sessions counts, and a class without a flag sets none
    flags = [f for f in FEATURES if f.startswith("is_")]
    several = classes.with_columns(pl.col("class").replace({"counting": "multi_session"}))
    assert features(ranking, units, several, 3).equals(asked)
    other = features(ranking, units, classes.with_columns(pl.lit("procedural").alias("class")), 3)
    assert other.select(flags).sum().sum_horizontal().item() == 0
    assert other.drop(flags).equals(asked.drop(flags))


def covered(tables: Tables, **options: object) -> pl.DataFrame:
    stage = CrossFitCoverage(**{"depth": 10, "level": "turn", **options})
    return stage.run(tables.only(stage.reads), STORE)["ranking"]


def test_coverage_is_a_probability_that_never_falls_with_rank_and_follows_what_is_true() -> None:
    tables = world(questions=400)
    made = covered(tables)
    assert made.drop("coverage").equals(tables["ranking"])
    assert made["coverage"].is_between(0, 1).all()
    assert made.group_by("question").agg(pl.col("coverage").diff().min() >= 0)["coverage"].all()
    deep = made.filter(pl.col("rank") >= 10).group_by("question").agg(pl.col("coverage").n_unique())
    assert deep["coverage"].unique().to_list() == [1]  # beyond its depth the model says no more
    big = reliability(made, labels(tables, "turn"), bins=5, ranks=(1, 3, 5, 10)).filter(pl.col("n") >= 100)
    assert big.height >= 3
    assert (big["estimated"] - big["observed"]).abs().max() < .1


@pytest.mark.parametrize("counted", [True, False])
def test_neither_its_own_label_nor_one_that_does_not_count_changes_an_estimate(counted: bool) -> None:
    tables = world(questions=40)
    mine = pl.col("question") == tables["evidence"]["question"][0]
    tables = tables.updated({"gold": tables["gold"].with_columns(scored=~mine | counted)})
    moved = tables["evidence"].with_columns(pl.when(mine).then((pl.col("turn") + 1) % 5).otherwise("turn")
                                            .cast(pl.Int32).alias("turn"))
    before, after = covered(tables), covered(tables.updated({"evidence": moved}))
    assert after.filter(mine).equals(before.filter(mine))
    assert after.equals(before) == (not counted)  # a label that counts changes the estimates of other folds
    assert before["coverage"].null_count() == 0


def test_reliability_by_hand() -> None:
    ranking = frame("ranking", {"question": [0, 0, 1, 1], "unit": [0, 1, 0, 1], "score": [2.0, 1.0, 2.0, 1.0],
                                "rank": [1, 2, 1, 2], "selected": [False] * 4, "coverage": [.2, .8, .3, 1.0]})
    needed = pl.DataFrame({"question": [0, 1], "complete": [2, None]}, schema_overrides={"question": pl.Int32})
    curve = reliability(ranking, needed, bins=2, ranks=(1, 2))
    assert curve.rows() == [(0.0, .5, 2, pytest.approx(.25), 0.0), (.5, 1.0, 2, pytest.approx(.9), .5)]


def test_without_evidence_there_is_nothing_to_fit_on() -> None:
    with pytest.raises(MemlabError, match="no ranked question has evidence"):
        covered(world(questions=20).updated({"evidence": world()["evidence"].head(0)}))
    with pytest.raises(ValidationError):
        CrossFitCoverage(folds=1)


def test_k_is_the_first_rank_whose_estimate_reaches_the_target() -> None:
    tables = world(questions=60)
    coverage = CrossFitCoverage(level="turn", depth=10)
    estimated = coverage.run(tables, STORE)["ranking"]
    learned = LearnedK(coverage=coverage, target=0.8, max_k=6)
    chosen = learned.run(tables, STORE)["ranking"]
    for (question,), rows in estimated.group_by("question"):
        reached = rows.filter(pl.col("coverage") >= 0.8, pl.col("rank") <= 6)["rank"].min()
        here = chosen.filter(pl.col("question") == question)
        assert here["selected"].sum() == (reached or 6)
        assert here["unreachable"].unique().to_list() == [0.0 if reached else 1.0]
    assert {"gold", "evidence"} <= set(learned.reads)
    assert learned.adaptive
    assert not getattr(Fixed(), "adaptive", False)
