from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.rank.select import BUDGETS, EachBudget, MeanBudget
from memlab.store import Store
from memlab.tables import Tables, frame

STORE = Store()


def ranking(tokens: list[float | None], **columns: list[float | None]) -> Tables:
    n = len(tokens)
    scores = [-float(i) for i in range(n)]
    return Tables(ranking=frame("ranking", {"question": [0] * n, "unit": range(n), "score": scores, "tokens": tokens,
                                            "rank": range(1, n + 1), "selected": [False] * n, **columns}))


def shown(rule, tables: Tables) -> list[bool]:
    return rule.run(tables, STORE)["ranking"]["selected"].to_list()


def test_a_mean_budget_shows_what_is_shown_from_it_on() -> None:
    tables = ranking([5.0, 5.0, 5.0, None], shown_from=[0.0, 700.0, 500.0, None])
    assert shown(MeanBudget(tokens=500), tables) == [True, False, True, False]
    assert shown(MeanBudget(tokens=1), tables) == [True, False, False, False]


def test_each_budget_goes_by_value_and_skips_what_does_not_fit() -> None:
    tables = ranking([30.0, 60.0, 20.0, 10.0, None], value=[0.5, 0.9, 0.1, 0.4, None])
    assert shown(EachBudget(tokens=100), tables) == [True, True, False, True, False]  # 60 + 30 + 10
    assert shown(EachBudget(tokens=95), tables) == [True, True, False, False, False]
    assert shown(EachBudget(tokens=40), tables) == [False, True, False, False, False]  # the first is always shown


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=30), st.integers(1, 40))
def test_each_budget_is_the_greedy_choice(units: list[tuple[int, int]], budget: int) -> None:
    tables = ranking([float(t) for t, _ in units], value=[float(v) for _, v in units])
    left, expected = budget, [False] * len(units)
    for place, i in enumerate(sorted(range(len(units)), key=lambda i: (-units[i][1], i))):
        if units[i][0] <= left or place == 0:
            expected[i], left = True, left - units[i][0]
    assert shown(EachBudget(tokens=budget), tables) == expected


@pytest.mark.parametrize("rule", [MeanBudget(), EachBudget()])
def test_a_curve_shows_ever_more_and_without_units_there_is_nothing(rule) -> None:
    rng = np.random.default_rng(0)
    tables = ranking(rng.integers(5, 60, 200).astype(float).tolist(), value=rng.uniform(size=200).tolist(),
                     shown_from=rng.uniform(0, 4000, 200).tolist())
    totals = [setting.run(tables, STORE)["ranking"].filter("selected")["tokens"].sum() for setting in rule.variations()]
    assert len(totals) == len(BUDGETS)
    assert totals == sorted(totals)
    assert totals[-1] > 10 * totals[0]
    empty = Tables(ranking=tables["ranking"].head(0))
    assert rule.run(empty, STORE)["ranking"].height == 0
    with pytest.raises(MemlabError, match="choose rank/select=marginal"):
        rule.run(Tables(ranking=tables["ranking"].drop("value", "shown_from")), STORE)
    assert pl.Series(BUDGETS).is_sorted()
