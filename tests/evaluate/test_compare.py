from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from memlab.data.dataset import GroupBy
from memlab.evaluate.compare import ArmResult, compare
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.statistics import holm
from memlab.evaluate.summary import per_question

METRIC = "selected/turn/recall_all"


def finished(tables, by: GroupBy = "question", **changes) -> ArmResult:
    return ArmResult(per_question(tables, by).with_columns(**changes), tables["ranking"], tables["context"], None,
                     None, "runs/x", 1.5)


@pytest.fixture(scope="module")
def world(make_random_world):
    return make_random_world(8, questions=120)


@pytest.fixture(scope="module")
def arms(world) -> dict[str, ArmResult]:
    swap = world.updated({"ranking": world["ranking"].with_columns(selected=pl.col("rank") == 4)})
    return {"fixed": finished(world), "gap": finished(swap, **{METRIC: pl.lit(1.0)}), "gap.twin": finished(world),
            "nothing": finished(world)}


def test_the_shape_is_plain_json(arms) -> None:
    contrasts = [Contrast("gap", "twin", METRIC), Contrast("nothing", "fixed", "session/mrr")]
    made = compare("adaptive_k", "synthetic", arms, contrasts, notes=["a note"],
                   constant_k={"fixed": {METRIC: [{"k": 1, "tokens": np.float64(3.0), "value": float("nan")}]}})
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert made["arms"]["gap"]["tokens_mean"] > 0
    assert made["arms"]["gap"]["seconds"] == 1.5
    assert made["constant_k"] == {"fixed": {METRIC: [{"k": 1, "tokens": 3.0, "value": None}]}}  # of all
    assert made["notes"][0] == "a note"
    assert compare("e", "d", {}, [])["arms"] == {}


def test_holm_over_the_declared_and_verdicts(arms) -> None:
    contrasts = [Contrast("gap", "twin", METRIC), Contrast("gap", "fixed", "session/mrr"),
                 Contrast("gap", "twin", METRIC, "less")]
    rows = compare("e", "d", arms, contrasts)["contrasts"]
    assert [r["p_adjusted"] for r in rows] == holm([r["p"] for r in rows])
    assert [r["verdict"] for r in rows] == ["shown", "open", "opposite"]
    assert rows[0]["comparator"] == "gap.twin"
    assert "its token-matched twin" in rows[0]["words"]


def test_an_arm_that_changed_nothing_is_called_so(arms) -> None:
    made = compare("e", "d", arms, [Contrast("nothing", "fixed", "session/mrr")])
    assert made["contrasts"][0]["verdict"] == "changed nothing"
    same = ["ranking", "selection", "context", "answers"]
    assert {"arm": "nothing", "comparator": "fixed", "identical": same} in made["noop"]


def test_missing_arms_do_not_stop_the_others_and_still_count_in_holm(arms) -> None:
    contrasts = [Contrast("gap", "twin", METRIC), Contrast("lost", "twin", METRIC), Contrast("gap", "gone", METRIC)]
    made = compare("e", "d", arms, contrasts, missing=["failed"])
    assert [r["verdict"] for r in made["contrasts"]] == ["shown", "no arm", "no comparator"]
    assert made["contrasts"][0]["p_adjusted"] == min(1, 3 * made["contrasts"][0]["p"])
    assert made["contrasts"][2]["p_adjusted"] is None
    assert made["missing"] == ["failed", "gone", "lost", "lost.twin"]


def test_a_difference_that_only_the_correction_takes_away_is_likely(world) -> None:
    """25 wins to 10 losses of 120 questions: p .011 by t, so above .05 / 20."""
    swap = world.updated({"ranking": world["ranking"].with_columns(selected=pl.col("rank") == 4)})
    lost = finished(swap, **{METRIC: pl.lit(0.0)})
    won = pl.when(pl.col("question") < 25).then(1.0).when(pl.col("question") < 35).then(-1.0).otherwise(0.0)
    arms = {"one": finished(world, **{METRIC: won}), "two": lost}
    contrasts = [Contrast("one", "two", METRIC), *(Contrast("gone", "two", METRIC) for _ in range(19))]
    row = compare("e", "d", arms, contrasts)["contrasts"][0]
    assert row["verdict"] == "likely"
    assert row["low"] > 0
    assert row["words"].endswith("likely: the interval excludes 0, but p does not pass the correction for several "
                                 "contrasts.")
    assert compare("e", "d", arms, [Contrast("one", "two", METRIC, "less")])["contrasts"][0]["verdict"] == "opposite"
    against = [Contrast("one", "two", METRIC, "less"), *contrasts[1:]]
    assert compare("e", "d", arms, against)["contrasts"][0]["verdict"] == "open"


def test_what_was_not_declared_is_exploratory(arms) -> None:
    made = compare("e", "d", arms, [Contrast("gap", "twin", METRIC)])
    pairs = {(r["arm"], r["comparator"]) for r in made["exploratory"]}
    assert pairs == {("gap", "gap.twin")}  # between nothing and fixed no question differs
    assert (METRIC, "gap") not in {(r["metric"], r["arm"]) for r in made["exploratory"]}
    assert all(r["p_adjusted"] is None for r in made["exploratory"])
    costly = arms["gap"].questions.with_columns(pl.col("context/tokens") + pl.col("question"))
    arms = {**arms, "gap": replace(arms["gap"], questions=costly)}
    made = compare("e", "d", arms, [Contrast("gap", "twin", METRIC)])
    assert {r["direction"] for r in made["exploratory"] if r["metric"] == "context/tokens"} == {"less"}
    assert {r["verdict"] for r in made["exploratory"]} == {"exploratory"}
