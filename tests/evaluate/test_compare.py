from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from memlab.evaluate.compare import ArmResult, compare
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.per_question import per_question
from memlab.evaluate.statistics import holm

METRIC = "selected/turn/recall_all"
SHAPE = {"arm", "comparator", "metric", "direction", "n", "difference", "low", "high", "test", "p", "p_adjusted",
         "wins", "losses", "ties", "smallest_detectable", "power", "verdict", "words"}


def finished(tables, **changes) -> ArmResult:
    return ArmResult(per_question(tables).with_columns(**changes), tables["ranking"], tables["context"], None, "runs/x",
                    1.5)


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
    made = compare("adaptive_k", "synthetic", arms, contrasts, clustered=False, notes=["a note"],
                   constant_k={METRIC: [{"k": 1, "tokens": np.float64(3.0), "value": float("nan")}]})
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert set(made) == {"experiment", "data", "questions", "scored", "clustered", "notes", "arms", "contrasts",
                         "exploratory", "noop", "answered", "constant_k", "missing"}
    assert made["arms"]["gap"]["metrics"]["session/mrr"].keys() == {"value", "low", "high", "n"}
    assert made["arms"]["gap"]["tokens_mean"] > 0
    assert made["arms"]["gap"]["seconds"] == 1.5
    assert made["constant_k"][METRIC] == [{"k": 1, "tokens": 3.0, "value": None}]
    assert made["notes"][0] == "a note"
    for row in [*made["contrasts"], *made["exploratory"]]:
        assert set(row) >= SHAPE


def test_holm_over_the_declared_and_verdicts(arms) -> None:
    contrasts = [Contrast("gap", "twin", METRIC), Contrast("gap", "fixed", "session/mrr"),
                 Contrast("gap", "twin", METRIC, "less")]
    rows = compare("e", "d", arms, contrasts, clustered=False)["contrasts"]
    assert [r["p_adjusted"] for r in rows] == holm([r["p"] for r in rows])
    assert [r["verdict"] for r in rows] == ["shown", "not shown", "opposite"]
    assert rows[0]["comparator"] == "gap.twin"
    assert "its token-matched twin" in rows[0]["words"]


def test_an_arm_that_changed_nothing_is_called_so(arms) -> None:
    made = compare("e", "d", arms, [Contrast("nothing", "fixed", "session/mrr")], clustered=False)
    assert made["contrasts"][0]["verdict"] == "changed nothing"
    same = ["ranking", "selection", "context", "answers"]
    assert {"arm": "nothing", "comparator": "fixed", "identical": same} in made["noop"]


def test_missing_arms_do_not_stop_the_others_and_still_count_in_holm(arms) -> None:
    contrasts = [Contrast("gap", "twin", METRIC), Contrast("lost", "twin", METRIC), Contrast("gap", "gone", METRIC)]
    made = compare("e", "d", arms, contrasts, clustered=False, missing=["failed"])
    assert [r["verdict"] for r in made["contrasts"]] == ["shown", "no arm", "no comparator"]
    assert made["contrasts"][0]["p_adjusted"] == min(1, 3 * made["contrasts"][0]["p"])
    assert made["contrasts"][2]["p_adjusted"] is None
    assert made["missing"] == ["failed", "gone", "lost", "lost.twin"]


def test_few_conversations_put_a_small_p_out_of_reach(arms) -> None:
    made = compare("e", "d", arms, [Contrast("gap", "twin", METRIC)], clustered=True)
    row = made["contrasts"][0]
    assert row["clusters"] == 3
    assert row["agree"] == 3
    assert row["verdict"] == "out of reach"
    assert "3 conversations give no p below .25, where .050 is asked for" in row["words"]
    assert any("not independent" in note for note in made["notes"])


def test_what_was_not_declared_is_exploratory(arms) -> None:
    made = compare("e", "d", arms, [Contrast("gap", "twin", METRIC)], clustered=False)
    pairs = {(r["arm"], r["comparator"]) for r in made["exploratory"]}
    assert pairs == {("gap", "gap.twin"), ("nothing", "fixed")}
    assert (METRIC, "gap") not in {(r["metric"], r["arm"]) for r in made["exploratory"]}
    assert all(r["p_adjusted"] is None for r in made["exploratory"])
    assert {r["direction"] for r in made["exploratory"] if r["metric"] == "context/tokens"} == {"less"}
    assert {r["verdict"] for r in made["exploratory"]} == {"exploratory", "changed nothing"}


def test_no_contrast_and_no_arm_is_a_comparison_too(arms) -> None:
    assert compare("e", "d", {}, [], clustered=False)["arms"] == {}
    assert compare("e", "d", {"fixed": arms["fixed"]}, [], clustered=False)["exploratory"] == []
