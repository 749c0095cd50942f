from __future__ import annotations

import polars as pl
import pytest

from memlab.evaluate.evidence import BUDGETS, selection, within_tokens
from memlab.evaluate.summary import per_question
from memlab.rank.select import Budget
from memlab.store import Store

TURNS = {0: [["user"] * 3, ["user"] * 2]}
"""Units 0 to 4 cost 10, 20, ... 50 tokens."""


def test_a_ranking_is_cut_where_the_first_unit_does_not_fit(make_world) -> None:
    tables = make_world(TURNS, {0: [(0, 0)], 1: [(0, 0), (1, 1)], 2: [(0, 2)]},
                        {0: [2, 0], 1: [0, 4, 1], 2: [4, 3, 2]})
    rows = within_tokens(tables, (30, 60)).to_dict(as_series=False)
    assert rows == {"question": [0, 1, 2], "within_30/session/recall_all": [1., 0., 0.],
                    "within_60/session/recall_all": [1., 1., 0.],
                    "within_30/turn/recall_all": [0., 0., 0.],  # no smaller unit is tried
                    "within_60/turn/recall_all": [1., 1., 0.]}


def test_an_arm_of_whole_sessions_may_show_nothing(make_world) -> None:
    tables = make_world(TURNS, {0: [(0, 0)]}, {0: [0, 1]}, level="session")
    rows = within_tokens(tables, (9, 10)).row(0, named=True)
    assert (rows["within_9/turn/recall_all"], rows["within_10/turn/recall_all"]) == (0., 1.)


@pytest.mark.parametrize("tokens", [150, 300, 450])
def test_it_is_what_a_budget_selects_that_holds_the_first_unit(make_random_world, tokens: int) -> None:
    tables = make_random_world(3, questions=60)
    budget = Budget(tokens=tokens).run(tables, Store(None))["ranking"]
    own = selection(tables.updated({"ranking": budget}))
    first = tables["ranking"].filter(pl.col("rank") == 1, pl.col("tokens") <= tokens).select("question")
    for level in ("turn", "session"):
        name = f"within_{tokens}/{level}/recall_all"
        both = within_tokens(tables, (tokens,)).join(own, on="question").join(first, on="question")
        assert both[name].to_list() == both[f"selected/{level}/recall_all"].to_list()
        assert both[name].sum() > 0


def test_what_is_not_measured_does_not_fit_and_an_arms_own_budget_is_a_column(make_random_world) -> None:
    tables = make_random_world(3)
    unmeasured = pl.when(pl.col("rank") <= 2).then("tokens")
    cut = tables.updated({"ranking": tables["ranking"].with_columns(tokens=unmeasured)})
    heads = tables.updated({"ranking": tables["ranking"].filter(pl.col("rank") <= 2)})
    assert within_tokens(cut).equals(within_tokens(heads))
    assert {f"within_{n}/turn/recall_all" for n in (*BUDGETS, 500)} <= set(per_question(tables, budget=500).columns)
    assert within_tokens(tables.updated({"ranking": tables["ranking"].drop("tokens")})).columns == ["question"]
