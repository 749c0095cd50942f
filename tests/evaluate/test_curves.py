from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluate.compare import ArmResult, compare
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.curves import Curve, as_curve, class_points, constant_k, value_column, with_heights
from memlab.evaluate.statistics import grouped_mean
from memlab.support.errors import MemlabError

TURNS = value_column("turn")


def random_curve(seed: int, questions: int = 200, points: int = 12) -> Curve:
    rng = np.random.default_rng(seed)
    tokens = np.cumsum(rng.integers(5, 60, (points, questions)), axis=0).astype(float)
    return Curve(tokens, (tokens > rng.integers(20, 500, questions)).astype(float))


def area(curve: Curve, low: float, high: float) -> float:
    grid = np.linspace(low, high, 20_001)
    heights = np.interp(grid, curve.tokens.mean(axis=1), curve.values.mean(axis=1))
    return float(np.trapezoid(heights, grid) / (high - low))


@given(st.integers(0, 1000), st.floats(40, 150), st.floats(20, 150))
def test_heights_have_the_mean_height_of_the_curve(seed: int, low: float, width: float) -> None:
    curve = random_curve(seed)
    assert curve.heights(low, low + width).mean() == pytest.approx(area(curve, low, low + width), abs=1e-5)


def test_the_test_of_heights_agrees_with_leaving_out_one_group_after_the_other() -> None:
    """The jackknife needs no derivative, so that it checks the one in ``heights``."""
    one, two, groups = random_curve(1), random_curve(2), np.repeat(np.arange(20), 10)
    made = grouped_mean(one.heights(60, 250) - two.heights(60, 250), groups)
    left_out = np.array([area(Curve(one.tokens[:, groups != g], one.values[:, groups != g]), 60, 250)
                         - area(Curve(two.tokens[:, groups != g], two.values[:, groups != g]), 60, 250)
                         for g in range(20)])
    jackknife = np.sqrt(19 / 20 * ((left_out - left_out.mean()) ** 2).sum())
    assert made.error == pytest.approx(jackknife, rel=.1)


@pytest.mark.parametrize(("low", "high"), [(0, 100), (100, 10_000), (100, 100)])
def test_a_range_that_a_curve_does_not_cover_is_refused(low: float, high: float) -> None:
    with pytest.raises(MemlabError, match="the curve reaches from"):
        random_curve(4).heights(low, high)


def test_classes_get_the_k_that_is_best_on_the_other_folds() -> None:
    """Questions of class a are complete at K = 1, those of b at K = 3; each unit costs 10 tokens."""
    questions = range(20)
    rows = [(q, k, 10.0 * (k + 1), float(k >= (0 if q % 2 else 2))) for k in range(5) for q in questions]
    constant = pl.DataFrame(rows, schema={"question": pl.Int32, "point": pl.Int32, "tokens": pl.Float64,
                                          TURNS: pl.Float64}, orient="row")
    made = class_points(constant, {q: "a" if q % 2 else "b" for q in questions}, {q: q // 2 for q in questions})
    curve, flat = as_curve(made, TURNS, list(questions)), as_curve(constant, TURNS, list(questions))
    best = curve.values.mean(axis=1) == 1
    assert curve.tokens.mean(axis=1)[best].min() == 20
    assert flat.tokens.mean(axis=1)[flat.values.mean(axis=1) == 1].min() == 30
    # the label of one question moves its own K no more than any other's: its fold is left out
    spoilt = constant.with_columns(pl.when(pl.col("question") == 0).then(0.0).otherwise(pl.col(TURNS)).alias(TURNS))
    again = class_points(spoilt, {q: "a" if q % 2 else "b" for q in questions}, {q: q // 2 for q in questions})
    of_zero = [frame.filter(pl.col("question") == 0)["tokens"].to_list() for frame in (made, again)]
    assert of_zero[0] == of_zero[1]


def test_a_class_unknown_elsewhere_and_questions_without_turns_spoil_no_choice() -> None:
    rows = [(q, k, 10.0 * (k + 1), float("nan") if q == 3 else float(k >= 1)) for k in range(4) for q in range(10)]
    constant = pl.DataFrame(rows, schema={"question": pl.Int32, "point": pl.Int32, "tokens": pl.Float64,
                                          TURNS: pl.Float64}, orient="row")
    made = class_points(constant, {q: "rare" if q == 0 else "a" for q in range(10)}, {q: q for q in range(10)})
    cheap = made.filter(pl.col("point") == 40).sort("question")
    assert cheap["tokens"].to_list() == [20.0] * 10
    last = made.filter(pl.col("point") == made["point"].max())
    assert last["tokens"].to_list() == [40.0] * 10


def test_a_curve_by_hand(make_world) -> None:
    tables = make_world({0: [["user"] * 2, ["user"] * 2]}, {0: [(0, 0), (1, 1)], 1: [(0, 1)], 2: []},
                        {0: [0, 2, 3], 1: [3, 1], 2: [1]})
    curve = constant_k(tables, largest=4)
    assert [p["k"] for p in curve["selected/turn/recall"]] == [1, 2, 3, 4]
    assert [p["value"] for p in curve["selected/turn/recall"]] == [.25, .75, 1, 1]
    assert [p["value"] for p in curve["selected/session/recall_all"]] == [0, 1, 1, 1]
    assert [p["tokens"] for p in curve["selected/turn/recall"]] == [70 / 3, 120 / 3, 160 / 3, 160 / 3]


def test_an_unmeasured_ranking_is_refused(make_random_world) -> None:
    tables = make_random_world(1)
    with pytest.raises(MemlabError, match="run read/measure"):
        constant_k(tables.updated({"ranking": tables["ranking"].drop("tokens")}))


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
