from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.evaluate.compare import ArmResult, compare
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.curves import with_heights

METRIC = "curve/selected/turn/recall_all"


def questions(n: int = 60) -> pl.DataFrame:
    return pl.DataFrame({
        "question": range(n), "corpus": np.arange(n) // 10, "group": np.arange(n) // 10, "category": ["a"] * n,
        "scored": [True] * n, "label_error": [None] * n,
    }, schema_overrides={"question": pl.Int32, "label_error": pl.String})


def curve(gain: float, n: int = 60) -> pl.DataFrame:
    """Constant K is complete with a chance that rises with K; the rule is so with ``gain`` fewer units."""
    rng = np.random.default_rng(0)
    needed = rng.integers(1, 40, n)
    rows = []
    for rule, shift in (("rule", gain), ("constant", 0), ("constant_by_class", gain / 2)):
        rows += [(rule, q, k, 10.0 * (k + 1), float(k + 1 + shift * (q % 3) >= needed[q]))
                 for k in range(50) for q in range(n)]
    return pl.DataFrame(rows, orient="row", schema={"rule": pl.String, "question": pl.Int32, "point": pl.Int32,
                                                    "tokens": pl.Float64, "selected/turn/recall_all": pl.Float64})


def test_a_rule_is_shown_to_beat_constant_k_over_the_whole_curve() -> None:
    arms = {"rule": ArmResult(questions(), curve=curve(6.0))}
    made = compare("e", "d", arms, [Contrast("rule", "constant", METRIC)])
    row = made["contrasts"][0]
    assert (row["verdict"], row["groups"], row["wins"], made["missing"]) == ("shown", 6, None, [])
    assert row["tokens"] == [30, 500]
    assert row["difference"] > .05
    assert "constant K at equal tokens" in row["words"]
    assert "mean over 30 to 500 tokens" in row["words"]


def test_the_range_is_the_contrasts_cut_to_what_both_cover() -> None:
    arms = {"rule": ArmResult(questions(), curve=curve(6.0))}
    row = compare("e", "d", arms, [Contrast("rule", "constant_by_class", METRIC, tokens=[100, 9000])])["contrasts"][0]
    assert row["tokens"] == [100, 500]
    assert row["comparator"] == "constant_by_class"


def test_an_arm_without_a_curve_is_undefined_and_every_curve_is_explored() -> None:
    arms = {"rule": ArmResult(questions(), curve=curve(6.0)), "fixed": ArmResult(questions())}
    made = compare("e", "d", arms, [Contrast("fixed", "constant", METRIC)])
    assert made["contrasts"][0]["verdict"] == "undefined"
    assert [(r["arm"], r["comparator"], r["metric"]) for r in made["exploratory"]] == [("rule", "constant", METRIC)]


def test_the_report_gets_the_rules_mean_points_by_tokens() -> None:
    made = compare("e", "d", {"rule": ArmResult(questions(), curve=curve(6.0))}, [])
    points = made["rule_curves"]["rule"]["selected/turn/recall_all"]
    expected = curve(6.0).filter(pl.col("rule") == "rule").group_by("tokens").agg(
        pl.col("selected/turn/recall_all").mean()).sort("tokens")
    assert [(p["tokens"], p["value"]) for p in points] == expected.rows()


def test_questions_without_known_turns_are_left_out() -> None:
    some = curve(6.0).with_columns(pl.when(pl.col("question") < 10).then(float("nan")).otherwise(
        pl.col("selected/turn/recall_all")).alias("selected/turn/recall_all"))
    one, two, _ = with_heights(Contrast("rule", "constant", METRIC), questions(), some, None)
    assert one.height == two.height == 50


def test_a_range_that_is_none_is_refused() -> None:
    with pytest.raises(MemlabError, match="is no range"):
        Contrast("a", "constant", METRIC, tokens=[500, 100])


def test_rules_that_select_from_one_ranking_are_compared_with_constant_k_without_a_setting() -> None:
    ranking = pl.DataFrame({"question": [0, 0], "rank": [1, 2], "unit": [1, 2], "selected": [True, False]})
    arms = {"rule": ArmResult(questions(), ranking, curve=curve(6.0)),
            "weak": ArmResult(questions(), ranking, curve=curve(0.0)), "fixed": ArmResult(questions(), ranking)}
    made = compare("e", "d", arms, [])
    assert [(row["arm"], row["comparator"], row["verdict"]) for row in made["contrasts"]] == [
        ("rule", "constant", "shown"), ("weak", "constant", "open")]
    assert made["verdict"] is None
    assert list(made["constant_k"]) == ["rule"]
    declared = compare("e", "d", arms, [Contrast("rule", "constant", METRIC)])
    assert len(declared["contrasts"]) == 1  # what is declared in its place
    assert declared["contrasts"][0]["difference"] == made["contrasts"][0]["difference"]
    answers = compare("e", "d", arms, [Contrast("rule", "fixed", "answer/f1")])  # a family of its own
    assert answers["contrasts"][1:] == made["contrasts"]
    other = {**arms, "fixed": ArmResult(questions(), ranking.with_columns(unit=pl.Series([2, 1])))}
    assert compare("e", "d", other, [])["contrasts"] == []
