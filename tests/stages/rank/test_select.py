"""Selections: constant, by class, within budgets, and by value."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.pipeline.tables import Tables, frame
from memlab.stages.query.classify import CLASSES
from memlab.stages.rank.select import BUDGETS, Budget, ByType, Calibrated, EachBudget, Fixed, Gap, MeanBudget
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.rank.rankings import ranking, shown, world

STORE = Store()


def cut(stage, table) -> list[list[int]]:
    tables = world().updated({"ranking": table})
    made = stage.run(tables.only(stage.reads), STORE)["ranking"]
    assert made.drop("selected", "unreachable", strict=False).equals(table.drop("selected"))
    return shown(made)


def test_fixed_takes_the_first_k_or_all_there_are() -> None:
    assert cut(Fixed(k=2), ranking([3, 2, 1], [5.0])) == [[1, 2], [1]]


def test_gap_cuts_at_the_largest_drop_and_adds_the_buffer() -> None:
    table = ranking([.9, .8, .3, .2, .1, .0], [.9, .1, .05, .04, .03, .02])
    assert cut(Gap(buffer=0), table) == [[1, 2], [1]]
    assert cut(Gap(buffer=1), table) == [[1, 2, 3], [1, 2]]


def test_gap_looks_only_between_min_and_max_and_shows_at_most_max() -> None:
    table = ranking([.9, .1, .08, .05, .04, -3.0])
    assert cut(Gap(min_k=2, max_k=4, buffer=0), table) == [[1, 2, 3]]  # .08 -> .05, not .9 -> .1 nor .04 -> -3
    assert cut(Gap(min_k=2, max_k=4, buffer=5), table) == [[1, 2, 3, 4]]


def test_gap_of_equal_drops_takes_the_first_and_a_single_unit_is_shown() -> None:
    assert cut(Gap(buffer=0), ranking([4, 3, 2, 1], [7.0])) == [[1], [1]]


def test_gap_checks_its_range() -> None:
    with pytest.raises(ValidationError, match="min_k 9 is above max_k 3"):
        Gap(min_k=9, max_k=3)


def test_budget_stops_at_the_first_that_does_not_fit_and_always_shows_one() -> None:
    table = ranking([3, 2, 1], [3, 2, 1], tokens=[60.0, 50.0, 10.0, 500.0, 1.0, 1.0])
    assert cut(Budget(tokens=115), table) == [[1, 2], [1]]
    with pytest.raises(MemlabError, match="no column 'tokens'"):
        cut(Budget(), ranking([1.0]))


def test_by_type_goes_by_the_class_that_was_told() -> None:
    # question 0 counts, question 1 asks for a fact
    assert cut(ByType(counting=3, factual=1), ranking([3, 2, 1, 0], [3, 2, 1])) == [[1, 2, 3], [1]]


@pytest.mark.parametrize(("told", "k"), [
    (["multi_session"], 4), (["temporal", "counting"], 2), (["general"], 3), (["procedural"], 3), ([], 3)])
def test_by_type_takes_the_first_class_and_has_a_k_for_each(told: list[str], k: int) -> None:
    classes = frame("classes", {"question": [0] * len(told), "class": told})
    stage = ByType(counting=4, temporal=2, other=3, factual=1)
    made = stage.run(Tables(ranking=ranking([5, 4, 3, 2, 1]), classes=classes), STORE)["ranking"]
    assert shown(made) == [[*range(1, k + 1)]]


def test_by_type_has_a_k_of_its_own_for_every_class_of_the_rules() -> None:
    assert {f.name for f in fields(ByType)} == {*CLASSES, "other"}


def test_calibrated_takes_the_smallest_k_that_reaches_the_target_or_says_that_none_does() -> None:
    table = ranking([3, 2, 1], [3, 2, 1], coverage=[.5, .9, .95, .1, .2, .3])
    made = Calibrated(target=.9, max_k=2).run(Tables(ranking=table), STORE)["ranking"]
    assert shown(made) == [[1, 2], [1, 2]]
    assert made.group_by("question", maintain_order=True).first()["unreachable"].to_list() == [0, 1]
    assert cut(Calibrated(target=.4, min_k=2), table) == [[1, 2], [1, 2, 3]]
    with pytest.raises(MemlabError, match="learn/coverage=crossfit"):
        cut(Calibrated(), ranking([1.0]))


lists = st.lists(st.lists(st.integers(-30, 30).map(lambda i: i / 4), min_size=1, max_size=9), min_size=1, max_size=2)


@given(lists, st.integers(1, 4), st.integers(0, 3))
def test_gap_shows_a_head_within_bounds_whatever_the_scale(scores, min_k, buffer) -> None:
    scores = [sorted(s, reverse=True) for s in scores]
    stage = Gap(min_k=min_k, max_k=5, buffer=buffer)
    got = cut(stage, ranking(*scores))
    assert got == cut(stage, ranking(*[[4 * x + 1 for x in s] for s in scores]))
    for ranks, s in zip(got, scores):
        assert ranks == list(range(1, len(ranks) + 1))
        assert min(min_k, len(s)) <= len(ranks) <= 5


@given(st.lists(st.integers(1, 90).map(float), min_size=1, max_size=9), st.integers(1, 300))
def test_budget_is_kept_unless_the_first_unit_breaks_it(tokens, budget) -> None:
    n = len(tokens)
    ranks = cut(Budget(tokens=budget), ranking([float(n - i) for i in range(n)], tokens=tokens))[0]
    spent = sum(tokens[: len(ranks)])
    assert spent <= budget or len(ranks) == 1
    assert len(ranks) == n or spent + tokens[len(ranks)] > budget


def valued(tokens: list[float | None], **columns: list[float | None]) -> Tables:
    n = len(tokens)
    scores = [-float(i) for i in range(n)]
    return Tables(ranking=frame("ranking", {"question": [0] * n, "unit": range(n), "score": scores, "tokens": tokens,
                                            "rank": range(1, n + 1), "selected": [False] * n, **columns}))


def selected_units(rule, tables: Tables) -> list[bool]:
    return rule.run(tables, STORE)["ranking"]["selected"].to_list()


def test_a_mean_budget_shows_what_is_shown_from_it_on() -> None:
    tables = valued([5.0, 5.0, 5.0, None], shown_from=[0.0, 700.0, 500.0, None])
    assert selected_units(MeanBudget(tokens=500), tables) == [True, False, True, False]
    assert selected_units(MeanBudget(tokens=1), tables) == [True, False, False, False]


def test_each_budget_goes_by_value_and_skips_what_does_not_fit() -> None:
    tables = valued([30.0, 60.0, 20.0, 10.0, None], value=[0.5, 0.9, 0.1, 0.4, None])
    assert selected_units(EachBudget(tokens=100), tables) == [True, True, False, True, False]  # 60 + 30 + 10
    assert selected_units(EachBudget(tokens=95), tables) == [True, True, False, False, False]
    assert selected_units(EachBudget(tokens=40), tables) == [False, True, False, False, False]  # the first always


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 4)), min_size=1, max_size=30), st.integers(1, 40))
def test_each_budget_is_the_greedy_choice(units: list[tuple[int, int]], budget: int) -> None:
    tables = valued([float(t) for t, _ in units], value=[float(v) for _, v in units])
    left, expected = budget, [False] * len(units)
    for place, i in enumerate(sorted(range(len(units)), key=lambda i: (-units[i][1], i))):
        if units[i][0] <= left or place == 0:
            expected[i], left = True, left - units[i][0]
    assert selected_units(EachBudget(tokens=budget), tables) == expected


@pytest.mark.parametrize("rule", [MeanBudget(), EachBudget()])
def test_a_curve_shows_ever_more_and_without_units_there_is_nothing(rule) -> None:
    rng = np.random.default_rng(0)
    tables = valued(rng.integers(5, 60, 200).astype(float).tolist(), value=rng.uniform(size=200).tolist(),
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
