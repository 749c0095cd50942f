from __future__ import annotations

import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.learn.truncation.stage import CutAtCost, LearnedTruncation
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.learn.probability.worlds import world

STORE = Store()


def run(tables: Tables, **options) -> pl.DataFrame:
    rule = LearnedTruncation(**{"depth": 12, "epochs": 2, "folds": 4, **options})
    return rule.run(tables.only(rule.reads), STORE)["ranking"]


def test_heads_are_shown_and_nothing_below_the_depth() -> None:
    tables = world(questions=30)
    ranking = run(tables)
    assert ranking.drop("cut_cost", "selected").equals(tables["ranking"].drop("selected"))
    for part in ranking.partition_by("question"):
        ranks = part.filter("selected")["rank"].to_list()
        assert ranks == [*range(1, len(ranks) + 1)]
        assert 1 <= len(ranks) <= 12


def test_the_curve_shows_more_at_a_lower_cost_and_passes_through_the_rule() -> None:
    ranking = run(world(questions=30), cost=.02)
    sizes = [rule.run(Tables(ranking=ranking), STORE)["ranking"]["selected"].sum()
             for rule in LearnedTruncation().variations()]
    assert sizes == sorted(sizes)
    again = CutAtCost(cost=.02).run(Tables(ranking=ranking), STORE)["ranking"]
    assert again.equals(ranking)
    with pytest.raises(MemlabError, match="rank/select=choppy"):
        CutAtCost().run(world(questions=2), STORE)


def test_a_question_is_cut_without_its_own_label() -> None:
    tables = world(questions=12)
    evidence = tables["evidence"]
    other = pl.concat([evidence.filter(pl.col("question") != 5),
                       frame("evidence", {"question": [5] * 3, "session": [0, 1, 2], "turn": [4, 4, 4]})])
    own = pl.col("question") == 5
    first, second = (run(t, by="question", folds=6, epochs=1)
                     for t in (tables, tables.updated({"evidence": other})))
    assert first.filter(own).equals(second.filter(own))
    assert not first.equals(second)


def test_questions_that_do_not_count_are_cut_and_not_fitted_on() -> None:
    tables = world(questions=12)
    some = pl.col("question") == 5
    gold = tables["gold"].with_columns(scored=~some)
    ranking = run(tables.updated({"gold": gold}), by="question", epochs=1)
    assert ranking.filter(some)["selected"].any()
    hidden = tables["evidence"].filter(~some)
    assert run(tables.updated({"gold": gold, "evidence": hidden}), by="question", epochs=1).filter(some).equals(
        ranking.filter(some))
