from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.learn.truncation import COSTS, CutAtCost, LearnedTruncation, Lists, fit, rewards
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.examples import fewer
from tests.learn.worlds import world

DEPTH = 12


def lists(n: int, seed: int = 0) -> Lists:
    """Rankings whose last evidence lies just before a large drop of the scores, or nowhere."""
    draw = np.random.default_rng(seed)
    complete = draw.integers(1, 7, n).astype(float)
    ranks = np.arange(1, DEPTH + 1)
    scores = np.where(ranks <= complete[:, None], 10.0, 0.0) - .1 * ranks + .02 * draw.normal(size=(n, DEPTH))
    return Lists(scores, np.full((n, DEPTH), 20.0), np.ones((n, DEPTH), bool), complete)


def test_the_reward_is_completeness_less_the_price_of_the_tokens() -> None:
    one = Lists(np.zeros((1, 3)), np.array([[10.0, 30.0, 20.0]]), np.array([[True, True, True]]), np.array([2.0]))
    # 10, 40 and 60 tokens are .5, 2 and 3 units of 20
    assert rewards(one, np.array([.1]), 20.0)[0] == pytest.approx([0 - .05, 1 - .2, 1 - .3])


@pytest.mark.slow
def test_a_fit_learns_to_cut_at_the_drop_and_shows_less_at_a_higher_cost() -> None:
    fitted = fit(lists(300), seed=0, epochs=40)
    new = lists(200, seed=1)
    costs = fitted.cut_costs(new)
    k = (costs >= .02).sum(axis=1)
    assert np.mean(k == new.complete) > .8
    sizes = [(costs >= cost).sum() for cost in COSTS]
    assert sizes == sorted(sizes)
    assert (np.diff(costs, axis=1) <= 0).all()  # heads of the ranking


def test_a_fit_depends_on_seed_and_content_but_not_on_the_order_of_questions() -> None:
    data = lists(40)
    costs = fit(data, seed=0, epochs=2).cut_costs(data)
    turned = fit(data.part(np.arange(40)[::-1]), seed=0, epochs=2).cut_costs(data)
    assert np.array_equal(costs, turned)
    first, second = (fit(data, seed=s, epochs=1).network.enter.weight.detach().numpy() for s in (0, 1))
    assert not np.array_equal(first, second)


@fewer(4)  # each fits a network
@given(st.lists(st.integers(1, DEPTH), min_size=1, max_size=6), st.integers(0, 9))
def test_no_rank_is_shown_that_does_not_exist(lengths, seed) -> None:
    data = lists(len(lengths), seed)
    data = Lists(data.scores, data.tokens, np.arange(DEPTH) < np.array(lengths)[:, None], data.complete)
    costs = fit(data, seed=seed, epochs=1).cut_costs(data)
    assert (costs[~data.exists] == 0).all()
    assert (costs[:, 0] == COSTS[0]).all()  # at least one unit


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
