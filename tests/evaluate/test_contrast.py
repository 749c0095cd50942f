from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.intervals import bca, student
from memlab.evaluate.statistics import by_cluster, mcnemar, sign_flip


def rows(values: list[float | None], corpora: list[int] | None = None, metric: str = "session/recall_all@5",
         category: str = "a") -> pl.DataFrame:
    n = len(values)
    return pl.DataFrame({"question": range(n), "corpus": corpora or [0] * n, "category": [category] * n,
                         "label_error": [None] * n, metric: pl.Series(values, dtype=pl.Float64)},
                        schema_overrides={"label_error": pl.String})


def measured(one, two, clustered=False, alpha=.05, **settings):
    contrast = Contrast("a", "b", settings.pop("metric", "session/recall_all@5"), **settings)
    return measure(contrast, one, two, clustered=clustered, alpha=alpha, seed=0)


def test_binary_contrast_by_hand() -> None:
    one = rows([1.0] * 12 + [0.0] * 5 + [1.0] * 60 + [0.0] * 22 + [None])
    two = rows([0.0] * 12 + [1.0] * 5 + [1.0] * 60 + [0.0] * 22 + [1.0])
    row = measured(one, two)
    assert (row["n"], row["wins"], row["losses"], row["ties"]) == (99, 12, 5, 82)
    assert row["difference"] == pytest.approx(7 / 99)
    assert row["p"] == mcnemar(12, 5)
    assert row["test"] == "exact McNemar"
    assert row["low"] < 0 < row["difference"] < row["high"]
    assert row["smallest_significant"] == pytest.approx((13 - 4) / 99)
    assert 0 < row["power"] < .5
    assert row["smallest_detectable"] > .03


def test_direction_turns_wins_not_the_difference() -> None:
    one, two = rows([0.0] * 3 + [1.0]), rows([1.0] * 3 + [0.0])
    row = measured(one, two, direction="less")
    assert (row["wins"], row["losses"]) == (3, 1)
    assert row["difference"] == -.5
    assert row["p"] == measured(one, two)["p"]


def test_graded_contrast_is_permuted_and_bootstrapped() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.random(80), rng.random(80)
    row = measured(rows(list(a + .1)), rows(list(b)))
    assert row["p"] == sign_flip(a + .1 - b)
    assert (row["low"], row["high"]) == bca((a + .1 - b)[:, None])[0]
    assert row["smallest_significant"] < row["smallest_detectable"]


def test_clustered_contrast_weighs_conversations() -> None:
    corpora = [0] * 8 + [1] * 2 + [2] * 2
    one, two = [1.0] * 8 + [1.0, 0.0] + [0.0, 1.0], [0.0] * 8 + [1.0, 0.0] + [1.0, 1.0]
    row = measured(rows(one, corpora), rows(two, corpora), clustered=True)
    per = by_cluster(np.array(one) - np.array(two), np.array(corpora))
    assert per.tolist() == [1, 0, -.5]
    assert row["difference"] == pytest.approx(.5 / 3)
    assert row["p"] == sign_flip(per)
    assert (row["clusters"], row["differing"], row["agree"], row["n"]) == (3, 2, 1, 12)
    low, high = student(per)
    assert (row["low"], row["high"]) == (max(-1, low), min(1, high))
    assert row["smallest_p"] == .5  # the conversation without a difference has no sign to agree with
    assert row["reachable"] is False
    assert row["power"] == 0
    assert row["smallest_detectable"] is None


@given(st.permutations(range(40)))
@settings(max_examples=20, deadline=None)
def test_the_order_of_questions_does_not_matter(order: list[int]) -> None:
    rng = np.random.default_rng(3)
    one, two = rows(list(rng.random(40)), list(range(8)) * 5), rows(list(rng.random(40)), list(range(8)) * 5)
    for clustered in (False, True):
        plain = measured(one, two, clustered)
        assert measured(one[order], two, clustered) == measured(one, two[order], clustered) == plain


def test_degenerate_contrasts() -> None:
    same = rows([1.0, 0.0, 1.0])
    row = measured(same, same)
    assert (row["p"], row["difference"], row["ties"]) == (1, 0, 3)
    assert row["smallest_significant"] is None
    graded = rows([.5, .25])
    assert measured(graded, graded)["p"] == 1
    assert measured(graded, graded)["low"] == 0
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


def test_an_unknown_direction_is_told() -> None:
    with pytest.raises(MemlabError, match="did you mean 'greater'"):
        Contrast("a", "b", "m", "grater")  # type: ignore[arg-type]
