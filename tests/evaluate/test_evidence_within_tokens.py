from __future__ import annotations

import polars as pl

from memlab.evaluate.evidence import BUDGETS, within_tokens
from memlab.evaluate.summary import per_question

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


def test_what_is_not_measured_does_not_fit_and_an_arms_own_budget_is_a_column(make_random_world) -> None:
    tables = make_random_world(3)
    unmeasured = pl.when(pl.col("rank") <= 2).then("tokens")
    cut = tables.updated({"ranking": tables["ranking"].with_columns(tokens=unmeasured)})
    heads = tables.updated({"ranking": tables["ranking"].filter(pl.col("rank") <= 2)})
    assert within_tokens(cut).equals(within_tokens(heads))
    assert {f"within_{n}/turn/recall_all" for n in (*BUDGETS, 500)} <= set(per_question(tables, budget=500).columns)
    assert within_tokens(tables.updated({"ranking": tables["ranking"].drop("tokens")})).columns == ["question"]
