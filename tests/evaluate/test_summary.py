from __future__ import annotations

import polars as pl
import pytest

from memlab.evaluate.statistics import bca, grouped_mean, mean, wilson
from memlab.evaluate.summary import (
    MEAN_RESAMPLES,
    SIZE,
    averages,
    by_order,
    calibration_error,
    complete_bins,
    macro_averages,
    per_question,
    summary,
)
from memlab.pipeline.tables import Tables


def test_values_are_those_of_metrics_json_and_intervals_fit_the_kind(make_random_world) -> None:
    rows = per_question(make_random_world(2, questions=60), "question")
    found, figures = summary(rows), averages(rows)
    for name, entry in found.items():
        assert entry["value"] == figures[name]
        if name.startswith("macro/"):
            assert entry["low"] is entry["high"] is None
            continue
        assert entry["low"] <= entry["value"] <= entry["high"], name
    hits = rows["session/recall_all@5"].drop_nulls()
    assert (found["session/recall_all@5"]["low"], found["session/recall_all@5"]["high"]) == wilson(
        int(hits.sum()), len(hits))
    graded = rows["turn/ndcg@10"].drop_nulls().to_numpy()
    expected = bca(graded[:, None], 0, MEAN_RESAMPLES)[0]
    assert (found["turn/ndcg@10"]["low"], found["turn/ndcg@10"]["high"]) == pytest.approx(expected)
    assert found["turn/ndcg@10"]["n"] == len(graded)
    assert "type=multi/session/recall_all@5" in found
    assert "type=multi/session/recall_all@3" not in found


def test_conversations_give_cluster_intervals_within_bounds(make_random_world) -> None:
    rows = per_question(make_random_world(2, questions=60), "corpus")
    found = summary(rows)
    kept = rows.filter(pl.col("session/mrr").is_not_null())
    expected = grouped_mean(kept["session/mrr"].to_numpy(), kept["corpus"].to_numpy()).interval()
    assert (found["session/mrr"]["low"], found["session/mrr"]["high"]) == pytest.approx(
        (max(0, expected[0]), min(1, expected[1])))
    assert all(e["low"] >= 0 for e in found.values() if e["low"] is not None)


def test_an_amount_is_no_share_whatever_its_values(make_random_world) -> None:
    """A K of 0 or 1 per question has the interval of its mean; at K = 1 for all there is nothing to be unsure of."""
    rows = per_question(make_random_world(2, questions=60), "question")
    ones = rows.with_columns(pl.lit(1.0).alias("selected/k"))
    assert summary(ones)["selected/k_mean"] == {"value": 1.0, "low": 1.0, "high": 1.0, "n": rows.height}
    some = rows.with_columns((pl.col("question") % 3 == 0).cast(pl.Float64).alias("selected/k"))
    expected = bca(some["selected/k"].to_numpy()[:, None], 0, MEAN_RESAMPLES)[0]
    found = summary(some)["selected/k_mean"]
    assert (found["low"], found["high"]) == pytest.approx(expected)


def test_averages_overall_by_type_and_without_label_errors(make_random_world) -> None:
    rows = per_question(make_random_world(0))
    wrong = pl.when(pl.col("question") == 3).then(pl.lit("wrong answer")).otherwise(None)
    figures = averages(rows.with_columns(wrong.alias("label_error")))
    multi = rows.filter(category="multi")["session/mrr"].drop_nulls().to_list()
    assert figures["type=multi/session/mrr"] == mean(multi)
    kept = rows.filter(pl.col("question") != 3)["session/mrr"].drop_nulls().to_list()
    assert figures["clean/session/mrr"] == mean(kept)
    assert figures["questions"] == 30
    assert figures["clean/questions"] == 29
    assert figures["context/tokens_mean"] > 0
    assert "context/tokens" not in figures
    assert not [name for name in averages(rows) if name.startswith("clean/")]
    assert all(isinstance(v, float | int) and v == v for v in figures.values())


def test_macro_averages_are_means_of_means() -> None:
    """Types a (2 questions that count: .5 and 1), b (one: 0); conversations 0 (.5), 1 (1 and 0)."""
    rows = pl.DataFrame({"category": ["a", "a", "b", "b", None], "corpus": [0, 1, 1, 1, 0],
                         "turn/ndcg@10": [.5, 1.0, 0.0, None, None], "turn/mrr": [1.0] * 5})
    assert macro_averages(rows) == {"macro/type/turn/ndcg@10": (.375, 3), "macro/corpus/turn/ndcg@10": (.5, 3)}
    assert macro_averages(rows.with_columns(category=pl.lit("a"), corpus=pl.int_range(5))) == {}


def test_the_mean_over_cases_by_hand() -> None:
    bins = [{"estimated": 0.1, "observed": 0.2, "n": 8}, {"estimated": 0.9, "observed": 0.4, "n": 2}]
    assert calibration_error(bins) == pytest.approx((8 * 0.1 + 2 * 0.5) / 10)
    assert calibration_error([{"estimated": 0.3, "observed": 0.3, "n": 5}]) == 0


def test_bins_without_numbers_are_left_out() -> None:
    bins = [{"estimated": 0.1}, None, {"estimated": "x", "observed": 0.2}, {"estimated": 0.5, "observed": 0.7}]
    assert complete_bins(bins) == bins[3:]
    assert calibration_error(bins) == pytest.approx(0.2)
    assert calibration_error([]) is None


def counted(calls: list[Tables]):
    @by_order
    def measure(tables: Tables) -> float:
        calls.append(tables)
        return float(tables["ranking"]["rank"].sum())

    return measure


def selecting(tables: Tables, k: int) -> Tables:
    return tables.updated({"ranking": tables["ranking"].with_columns(selected=pl.col("rank") <= k)})


def test_measures_of_an_order_are_made_once_see_no_selection_and_are_bounded(make_random_world) -> None:
    calls: list[Tables] = []
    measure, world = counted(calls), make_random_world(3)
    assert measure(selecting(world, 1)) == measure(selecting(world, 4))
    assert len(calls) == 1
    assert not calls[0]["ranking"]["selected"].any()
    assert "context" not in calls[0]
    measure(world.updated({"ranking": world["ranking"].filter(pl.col("rank") <= 2)}))
    measure(world.updated({"evidence": world["evidence"].head(1)}))
    measure(world)
    assert len(calls) == 3
    for seed in range(SIZE):
        measure(make_random_world(10 + seed))
    measure(world)
    assert len(calls) == 3 + SIZE + 1
