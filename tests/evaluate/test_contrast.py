from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from memlab.evaluate.compare import ArmResult, identical
from memlab.evaluate.contrast import OUTPUTS, Contrast, measure
from memlab.evaluate.statistics import grouped_mean, sign_flip


def rows(values: list[float | None], groups: list[int] | None = None, metric: str = "session/recall_all@5",
         category: str = "a") -> pl.DataFrame:
    n = len(values)
    return pl.DataFrame({"question": range(n), "group": groups or range(n), "category": [category] * n,
                         "label_error": [None] * n, metric: pl.Series(values, dtype=pl.Float64)},
                        schema_overrides={"label_error": pl.String})


def measured(one, two, alpha=.05, **settings):
    contrast = Contrast("a", "b", settings.pop("metric", "session/recall_all@5"), **settings)
    return measure(contrast, one, two, alpha=alpha, seed=0)


def test_a_contrast_by_hand() -> None:
    one = rows([1.0] * 12 + [0.0] * 5 + [1.0] * 60 + [0.0] * 22 + [None])
    two = rows([0.0] * 12 + [1.0] * 5 + [1.0] * 60 + [0.0] * 22 + [1.0])
    row = measured(one, two)
    assert (row["n"], row["wins"], row["losses"], row["ties"]) == (99, 12, 5, 82)
    assert row["difference"] == pytest.approx(7 / 99)
    expected = stats.ttest_1samp([1.0] * 12 + [-1.0] * 5 + [0.0] * 82, 0)
    assert row["p"] == pytest.approx(expected.pvalue)
    assert (row["low"], row["high"]) == pytest.approx(tuple(expected.confidence_interval()))
    assert row["p_sign_flip"] == sign_flip(np.array([1.0] * 12 + [-1.0] * 5))
    assert 0 < row["power"] < .5
    assert row["smallest_detectable"] > .03


def test_direction_turns_wins_not_the_difference() -> None:
    one, two = rows([0.0] * 3 + [1.0]), rows([1.0] * 3 + [0.0])
    row = measured(one, two, direction="less")
    assert (row["wins"], row["losses"]) == (3, 1)
    assert row["difference"] == -.5
    assert row["p"] == measured(one, two)["p"]


def test_the_questions_weigh_the_same_and_the_groups_give_the_error() -> None:
    groups = [0] * 8 + [1] * 2 + [2] * 2
    one, two = [1.0] * 8 + [1.0, 0.0] + [0.0, 1.0], [0.0] * 8 + [1.0, 0.0] + [1.0, 1.0]
    row = measured(rows(one, groups), rows(two, groups))
    expected = grouped_mean(np.array(one) - np.array(two), np.array(groups))
    assert row["difference"] == pytest.approx(7 / 12)
    assert (row["p"], row["df"]) == (expected.p, expected.df)
    assert (row["groups"], row["differing"], row["agree"], row["n"]) == (3, 2, 1, 12)
    assert (row["low"], row["high"]) == (-1, 1)
    assert row["p_sign_flip"] == sign_flip(np.array([8.0, 0, -1])) == 1  # one sign of two


def test_the_same_difference_in_every_question_is_tested_by_signs_alone() -> None:
    for n, shown in ((3, False), (30, True)):
        row = measured(rows([1.0] * n), rows([0.0] * n))
        assert row["p"] == row["p_sign_flip"] == sign_flip(np.ones(n))
        assert (row["low"], row["high"]) == ((1, 1) if shown else (None, None))


def test_degenerate_contrasts() -> None:
    same = rows([1.0, 0.0, 1.0])
    row = measured(same, same)
    assert (row["p"], row["difference"], row["ties"]) == (1, 0, 3)
    assert row["smallest_detectable"] is None
    graded = rows([.5, .25])
    assert measured(graded, graded)["p"] == 1  # one sign of two
    assert measured(graded, graded)["low"] is None
    assert measured(rows([.3]), rows([.2]))["low"] is None
    assert measured(rows([None, 1.0]), rows([1.0, None]))["n"] == 0
    assert measured(same, rows([1.0], metric="turn/mrr"))["p"] is None


def test_metrics_of_a_type_and_costs_are_found_by_their_names() -> None:
    one = pl.concat([rows([1.0, 1.0]), rows([0.0], category="b").with_columns(question=pl.lit(9, pl.Int64))])
    row = measured(one, one.with_columns(pl.lit(0.0).alias("session/recall_all@5")),
               metric="type=a/session/recall_all@5")
    assert (row["n"], row["wins"]) == (2, 2)
    costs = rows([100.0, 200.0, 350.0], metric="context/tokens")
    row = measured(costs, costs.with_columns(pl.col("context/tokens") * 2), metric="context/tokens_mean",
                   direction="less")
    assert (row["wins"], row["planned"], row["power"]) == (3, None, None)
    assert row["low"] < row["difference"] == pytest.approx(-650 / 3)


def test_each_output_is_compared_for_itself(make_random_world) -> None:
    tables = make_random_world(5)
    ranking, context = tables["ranking"], tables["context"]
    said = pl.DataFrame({"question": [0, 1], "sample": [0, 0], "text": ["a", "b"]})
    base = ArmResult(tables["questions"], ranking, context)
    shuffled = ranking.sample(fraction=1, shuffle=True, seed=1).with_columns(score=pl.col("score") * 2)
    swapped = ranking.with_columns(rank=pl.when(pl.col("rank") <= 2).then(3 - pl.col("rank")).otherwise("rank"))
    more, asked = ranking.with_columns(selected=pl.col("rank") <= 4), replace(base, answers=said)
    one, other = (replace(base, ranking=ranking.with_columns(level=pl.lit("memory"), session=pl.lit(session)))
                  for session in (0, 1))  # one number for different memories
    for arm, against, expected in (
            (base, replace(base, ranking=shuffled, context=context.reverse()), [*OUTPUTS]),
            (base, replace(base, ranking=swapped), ["selection", "context", "answers"]),
            (base, replace(base, ranking=more), ["ranking", "context", "answers"]),
            (base, replace(base, context=context[1:]), ["ranking", "selection", "answers"]),
            (one, other, ["context", "answers"]),
            (asked, replace(asked, answers=said.reverse()), [*OUTPUTS]),
            (asked, replace(asked, answers=said.with_columns(text=pl.lit("c"))), ["ranking", "selection", "context"]),
            (asked, base, ["ranking", "selection", "context"])):
        assert identical(arm, against) == expected
    assert identical(base, replace(base, context=None)) is None
