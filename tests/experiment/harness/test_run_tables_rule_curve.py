from __future__ import annotations

import polars as pl
import pytest

from memlab.data.dataset import groups
from memlab.data.synthetic.dataset import Synthetic
from memlab.evaluate.curves import BY_CLASS, CONSTANT, RULE
from memlab.evaluate.evidence import selection
from memlab.experiment.harness.run_tables import rule_curve
from memlab.learn.coverage import CrossFitCoverage, LearnedK
from memlab.learn.probability import CalibratedTopP, CrossFitProbability, Marginal
from memlab.pipeline.pipeline import apply
from memlab.pipeline.tables import Tables
from memlab.stages.rank.adaptive_k import AdaptiveK, TopP
from memlab.stages.rank.select import Budget, ByType, Fixed, Gap
from memlab.store import Store
from tests.small import lexical

TURNS = "selected/turn/recall_all"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def tables(store: Store) -> Tables:
    return lexical(select=Fixed(k=5)).run(Synthetic(lives=4, questions=13).load(), store)


def curve_of(select, tables: Tables, store: Store) -> pl.DataFrame | None:
    groups_of = groups(tables["questions"], tables["evidence"], tables["turns"])
    selected = tables.updated(apply(select, tables, store))
    return rule_curve(select, selected, dict(groups_of.iter_rows()), store)


@pytest.mark.parametrize("select", [ByType(), Gap(), Budget(tokens=300),
                                    LearnedK(coverage=CrossFitCoverage(level="turn", folds=2)),
                                    Marginal(probability=CrossFitProbability(folds=2)), AdaptiveK(), TopP(),
                                    CalibratedTopP(probability=CrossFitProbability(folds=2))],
                         ids=lambda select: type(select).__name__)
def test_every_adaptive_rule_has_a_curve_of_its_settings(select, tables: Tables, store: Store) -> None:
    curve = curve_of(select, tables, store)
    assert set(curve["rule"].unique()) == {RULE, CONSTANT, BY_CLASS}
    means = curve.filter(pl.col("rule") == RULE).group_by("point").agg(pl.col("tokens").mean()).sort("point")["tokens"]
    assert means.is_sorted()
    assert means[-1] > 2 * means[0]


def test_a_point_has_the_tokens_and_recall_of_its_selection(tables: Tables, store: Store) -> None:
    rule = list(Gap().variations())[5]
    curve = curve_of(Gap(), tables, store).filter(pl.col("rule") == RULE, pl.col("point") == 5)
    chosen = tables.updated(apply(rule, tables, store))
    tokens = chosen["ranking"].filter("selected").group_by("question").agg(pl.col("tokens").sum().alias("expected"))
    both = curve.join(tokens, on="question").join(selection(chosen).select("question", recall=TURNS), on="question")
    assert both.height == curve.height
    assert both["tokens"].to_list() == both["expected"].to_list()
    assert both[TURNS].fill_nan(None).to_list() == both["recall"].to_list()


def test_a_rule_without_a_knob_has_no_curve(tables: Tables, store: Store) -> None:
    assert curve_of(Fixed(k=3), tables, store) is None
