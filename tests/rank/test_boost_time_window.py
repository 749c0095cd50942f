from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.rank.boost import TimeWindowBoost
from memlab.rank.units import memory_units, rank_units, session_units, turn_units
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables, frame
from tests.rank.rankings import ranking, world

DAYS = [datetime(2023, 5, 1, 23), datetime(2023, 5, 10), datetime(2023, 5, 20), datetime(2023, 5, 10)]


def made(table: pl.DataFrame, *windows: tuple[int, int] | None, level=session_units) -> Tables:
    """The small world with dated sessions, these windows (days of May 2023), a query each."""
    tables = world()
    sessions = tables["sessions"].with_columns(pl.Series("said_on", DAYS, SCHEMAS["sessions"]["said_on"]))
    spans = [[datetime(2023, 5, d) for d in w] if w else None for w in windows]
    queries = frame("queries", {"query": range(len(spans)), "question": range(len(spans)), "window": spans})
    units = session_units(sessions, tables["turns"]) if level is session_units else level(tables["turns"])
    return tables.updated({"sessions": sessions, "queries": queries, "units": units, "ranking": rank_units(table)})


def moved(tables: Tables, strength: float | None = None, **more) -> pl.DataFrame:
    stage = TimeWindowBoost(strength=strength, **more)
    return stage.run(tables.only(stage.reads), Store())["ranking"]


FOUND = ranking([.9, .5, .1], [.9, .5, .1])  # sessions 0, 1, 2 of corpus 0 for both questions


def test_what_lies_in_the_window_comes_first_in_its_old_order_and_nothing_is_dropped() -> None:
    after = moved(made(FOUND, (9, 21), None))
    assert after.filter(question=0)["unit"].to_list() == [1, 2, 0]
    assert after.filter(question=1).equals(made(FOUND, None, None)["ranking"].filter(question=1))
    assert after.filter(question=0)["score"].to_list() == pytest.approx([.5 + 1.8, .1 + 1.8, .9])
    assert after.columns == FOUND.columns


def test_strength_is_told_in_deviations() -> None:
    after = moved(made(FOUND, (20, 20)), strength=1.0)  # deviation of .9, .5, .1 is .326599
    assert after.filter(question=0)["score"].to_list() == pytest.approx([.9, .5, .426599])
    assert moved(made(FOUND, (20, 20)), strength=2.0)["unit"].to_list()[:3] == [0, 2, 1]


def test_two_days_are_forgiven_by_day_not_by_hour() -> None:
    assert moved(made(FOUND, (3, 3)))["unit"].to_list()[:3] == [0, 1, 2]
    assert moved(made(FOUND, (12, 12)))["unit"].to_list()[:3] == [1, 0, 2]
    assert moved(made(FOUND, (13, 13)))["unit"].to_list()[:3] == [0, 1, 2]
    assert moved(made(FOUND, (13, 13)), tolerance_days=3)["unit"].to_list()[:3] == [1, 0, 2]


def test_turns_bear_the_day_of_their_session_and_memories_their_own() -> None:
    turns = ranking([.9, .8, .7, .6, .5, .4])
    assert moved(made(turns, (20, 20), level=turn_units))["unit"].to_list()[0] == 5
    tables = made(turns, (28, 28))
    own = [datetime(2023, 5, 28) if m == 3 else None for m in tables["memories"]["memory"]]
    memories = tables["memories"].with_columns(pl.Series("happened_on", own, SCHEMAS["memories"]["happened_on"]))
    after = moved(tables.updated({"memories": memories, "units": memory_units(memories)}))
    assert after["unit"].to_list() == [3, 0, 1, 2, 4, 5]


def test_sub_queries_windows_count_too() -> None:
    tables = made(FOUND, None, None)
    subs = frame("queries", {"query": [7, 8], "question": [0, 0], "kind": ["sub", "sub"],
                             "window": [[datetime(2023, 5, 20)] * 2, [datetime(2023, 5, 10)] * 2]})
    assert moved(tables.updated({"queries": pl.concat([tables["queries"], subs])}))["unit"].to_list()[:3] == [1, 2, 0]


def test_an_empty_parse_leaves_the_very_same_ranking() -> None:
    tables = made(FOUND, None, None)
    assert moved(tables).equals(tables["ranking"])
    assert moved(made(FOUND, (28, 29), None)).equals(tables["ranking"])  # nothing was said then


@given(st.lists(st.floats(-5, 5), min_size=6, max_size=6), st.integers(1, 28), st.integers(0, 9),
       st.none() | st.floats(.1, 9))
def test_order_within_and_outside_a_window_is_kept(scores: list[float], start: int, days: int, strength) -> None:
    table = ranking(scores).with_columns(pl.Series("score", scores))
    tables = made(table, (start, min(start + days, 28)), level=turn_units)
    before, after = tables["ranking"]["unit"].to_list(), moved(tables, strength=strength)["unit"].to_list()
    assert sorted(before) == sorted(after)
    said = [DAYS[s].day for s in (0, 0, 1, 1, 1, 2)]
    inside = {u for u, day in enumerate(said) if start - 2 <= day <= min(start + days, 28) + 2}
    for group in (inside, set(before) - inside):
        assert [u for u in before if u in group] == [u for u in after if u in group]
    if strength is None:
        assert set(after[: len(inside)]) == inside
