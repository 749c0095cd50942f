from __future__ import annotations

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.errors import MemlabError
from memlab.learn.folds import folds
from memlab.learn.probability.nested import NestedProbability
from memlab.learn.probability.selection import Marginal
from memlab.learn.probability.stage import CrossFitProbability
from memlab.pipeline import Pipeline
from memlab.rank.score import Score
from memlab.read.tokens import TokenCost
from memlab.store import Store
from memlab.tables import Tables
from tests.learn.ranker.worlds import learned, lives, searched

pytest.importorskip("lightgbm")

STORE = Store()
RANKER = learned(folds=4)
NESTED = NestedProbability(ranker=RANKER, folds=4, depth=30)


def ranked(tables: Tables) -> Tables:
    """The ranking of the learned fusion, with its tokens."""
    whole = tables.updated(RANKER.run(tables.only(RANKER.reads), STORE))
    return whole.updated(TokenCost().run(whole.only(TokenCost.reads), STORE))


def estimates(stage: CrossFitProbability, tables: Tables) -> pl.DataFrame:
    return stage.run(tables.only(stage.reads), STORE)["ranking"].select("question", "unit", "probability")


def test_no_label_of_a_fold_reaches_its_estimates_and_without_nesting_they_do() -> None:
    tables = searched()
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], 4)
    own = fold_of.filter(pl.col("fold") == 1)
    here = pl.col("question").is_in(own["question"].implode())
    moved = tables.updated({"evidence": tables["evidence"].with_columns(
        pl.when(here).then(0).otherwise("turn").cast(pl.Int32).alias("turn"))})
    one, two = ranked(tables), ranked(moved)
    plain = CrossFitProbability(folds=4, depth=30)
    assert estimates(NESTED, one).filter(here).equals(estimates(NESTED, two).filter(here))
    assert not estimates(plain, one).filter(here).equals(estimates(plain, two).filter(here))
    assert not estimates(NESTED, one).equals(estimates(NESTED, two))  # other folds do learn from it


def test_a_fold_is_ranked_as_shown_and_the_others_by_rankers_that_have_not_seen_it() -> None:
    tables = ranked(searched())
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], 4)
    seen = []
    for part, ranking in NESTED.rankings(tables, fold_of):
        own = fold_of.filter(pl.col("fold") == part)
        of_fold = tables["ranking"].join(own, on="question", how="semi")
        assert ranking.join(own, on="question", how="semi").equals(of_fold)
        others = ranking.join(own, on="question", how="anti")
        assert others.height == tables["ranking"].join(own, on="question", how="anti").height
        assert others["tokens"].null_count() == others.filter(pl.col("rank") > 200)["tokens"].null_count()
        assert others.group_by("question").agg((pl.col("rank").sort().diff().drop_nulls() == 1).all())["rank"].all()
        seen.append(part)
    assert seen == [0, 1, 2, 3]


def test_it_selects_in_a_pipeline() -> None:
    pipeline = Pipeline(dense=Pipeline().without("dense").dense, score=RANKER,
                        select=Marginal(probability=NESTED, tokens=100))
    ranking = pipeline.run(lives(), STORE)["ranking"]
    spent = ranking.filter("selected")["tokens"].sum() / ranking["question"].n_unique()
    assert spent == pytest.approx(100, rel=.4)


def test_other_folds_a_saved_ranker_and_other_rankings_are_refused() -> None:
    with pytest.raises(ValidationError, match="folds, by and seed differ"):
        NestedProbability(ranker=RANKER, folds=3)
    with pytest.raises(ValidationError, match="LearnedScore"):
        NestedProbability(ranker=Score(), folds=4)
    tables = searched()
    linear = tables.updated(Score().run(tables, STORE))
    measured = linear.updated(TokenCost().run(linear.only(TokenCost.reads), STORE))
    with pytest.raises(MemlabError, match="no column 'linear'"):
        estimates(NESTED, measured)
    few = NestedProbability(ranker=learned(folds=2), folds=2)
    with pytest.raises(MemlabError, match="2 folds leave no data"):
        estimates(few, ranked(tables))
