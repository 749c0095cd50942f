from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from memlab.evaluate.statistics import bca, grouped_mean, wilson
from memlab.evaluate.summary import MEAN_RESAMPLES, averages, is_binary, per_question, summary


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


def test_is_binary() -> None:
    assert is_binary(np.array([0.0, 1.0]))
    assert not is_binary(np.array([0.0, .5]))


def test_an_amount_is_no_share_whatever_its_values(make_random_world) -> None:
    """A K of 0 or 1 per question has the interval of its mean; at K = 1 for all there is nothing to be unsure of."""
    rows = per_question(make_random_world(2, questions=60), "question")
    ones = rows.with_columns(pl.lit(1.0).alias("selected/k"))
    assert summary(ones)["selected/k_mean"] == {"value": 1.0, "low": 1.0, "high": 1.0, "n": rows.height}
    some = rows.with_columns((pl.col("question") % 3 == 0).cast(pl.Float64).alias("selected/k"))
    expected = bca(some["selected/k"].to_numpy()[:, None], 0, MEAN_RESAMPLES)[0]
    found = summary(some)["selected/k_mean"]
    assert (found["low"], found["high"]) == pytest.approx(expected)
