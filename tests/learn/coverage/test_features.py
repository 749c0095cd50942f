from __future__ import annotations

import math

import polars as pl
import pytest

from memlab.learn.coverage.features import FEATURES, features
from memlab.tables import frame


def world():
    classes = frame("classes", {"question": [4, 4, 2], "class": ["counting", "factual", "factual"]})
    units = frame("units", {"unit": [0, 1, 2], "corpus": [0] * 3, "session": [0, 0, 1], "turns": [[0], [1], [0]],
                            "level": ["turn"] * 3})
    ranking = frame("ranking", {
        "question": [4, 4, 4, 2], "unit": [0, 1, 2, 2], "score": [3.0, 1.0, -1.0, 5.0], "rank": [1, 2, 3, 1],
        "selected": [False] * 4, "a": [3.0, 1.0, 2.0, 1.0], "b": [None, 2.0, None, None], "tokens": [1.0] * 4})
    return ranking, units, classes


def test_features_by_hand() -> None:
    table = features(*world(), depth=5)
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


def test_a_list_of_one_and_a_constant_list_are_finite() -> None:
    ranking, *rest = world()
    flat = features(ranking.with_columns(score=pl.lit(1.0)), *rest, depth=2)
    assert flat.select(pl.all().is_finite().all()).row(0) == (True,) * flat.width
    assert flat.filter(question=2)["is_factual"].to_list() == [1]
    assert flat["rank"].max() == 2


def test_scale_and_shift_of_scores_do_not_matter() -> None:
    ranking, *rest = world()
    moved = ranking.with_columns(pl.col("score") * 7 - 3)
    one, two = features(ranking, *rest, depth=3), features(moved, *rest, depth=3)
    assert one.to_numpy() == pytest.approx(two.to_numpy())


def test_a_question_over_several_sessions_counts_and_a_class_without_a_flag_sets_none() -> None:
    ranking, units, classes = world()
    flags = [f for f in FEATURES if f.startswith("is_")]
    asked = features(ranking, units, classes, depth=3)
    several = features(ranking, units, classes.with_columns(pl.col("class").replace({"counting": "multi_session"})), 3)
    assert several.equals(asked)
    other = features(ranking, units, classes.with_columns(pl.lit("procedural").alias("class")), 3)
    assert other.select(flags).sum().sum_horizontal().item() == 0
    assert other.drop(flags).equals(asked.drop(flags))
