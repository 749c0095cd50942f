"""The learned K: the estimate and the cut as one stage."""

from __future__ import annotations

import polars as pl

from memlab.learn.coverage.stage import CrossFitCoverage, LearnedK
from memlab.rank.select import Fixed
from memlab.store import Store
from tests.learn.coverage.test_stage import world


def test_k_is_the_first_rank_whose_estimate_reaches_the_target(tmp_path):
    tables = world(questions=60)
    coverage = CrossFitCoverage(level="session", depth=10)
    estimated = coverage.run(tables, Store(tmp_path))["ranking"]
    chosen = LearnedK(coverage=coverage, target=0.8, max_k=6).run(tables, Store(tmp_path))["ranking"]
    for (question,), rows in estimated.group_by("question"):
        reached = rows.filter(pl.col("coverage") >= 0.8, pl.col("rank") <= 6)["rank"].min()
        here = chosen.filter(pl.col("question") == question)
        assert here["selected"].sum() == (reached or 6)
        assert here["unreachable"].unique().to_list() == [0.0 if reached else 1.0]


def test_it_asks_for_gold_and_for_a_twin():
    learned = LearnedK(coverage=CrossFitCoverage())
    assert {"gold", "evidence"} <= set(learned.reads)
    assert learned.adaptive
    assert not getattr(Fixed(), "adaptive", False)
