from __future__ import annotations

from datetime import timedelta

import polars as pl

from memlab.rank.signals import flag_units, on_units, questions_of, unit_places
from tests.rank.rankings import ranking
from tests.rank.signals.worlds import ASKED, dated

# memories 0 .. 7 are the turns, 100 .. 103 the sessions


def test_a_turn_stands_for_the_memories_that_name_it() -> None:
    got = on_units(dated(ranking([.9, .8, .7])))
    assert got.rows() == [(0, 0, 0), (0, 0, 100), (0, 1, 1), (0, 1, 100), (0, 2, 2), (0, 2, 101)]


def test_a_session_stands_for_all_of_its_memories_and_a_memory_for_itself() -> None:
    table = ranking([.9]).with_columns(unit=pl.lit(1, pl.Int64))
    assert on_units(dated(table, "session"))["memory"].to_list() == [2, 3, 4, 101]
    table = ranking([.9, .8]).with_columns(unit=pl.Series([101, 3], dtype=pl.Int64))
    assert on_units(dated(table, "memory")).rows() == [(0, 3, 3), (0, 101, 101)]


def test_only_ranked_units_are_there_and_what_is_said_later_is_not() -> None:
    assert on_units(dated(ranking([], [.9]).with_columns(unit=pl.lit(7, pl.Int64)))).rows() == [(1, 7, 7), (1, 7, 103)]
    late = [ASKED + timedelta(days=m == 100, hours=5) for m in [*range(8), *range(100, 104)]]
    got = on_units(dated(ranking([.9]), said_on=late))
    assert got["memory"].to_list() == [0]  # the same day counts, whatever the hour
    assert on_units(dated(ranking([.9]), said_on=[None] * 12))["memory"].to_list() == [0, 100]


def test_units_bear_the_day_of_their_session_and_memories_their_own() -> None:
    assert [d.day for d in unit_places(dated(ranking([.9, .8, .7])))["said_on"]] == [1, 1, 10]
    own = [ASKED] * 12
    table = ranking([.9])
    assert unit_places(dated(table, "memory", said_on=own))["said_on"].to_list() == [ASKED]
    assert unit_places(dated(table, said_on=own))["said_on"].to_list() == [ASKED + timedelta(days=-31, hours=3)]


def test_any_class_of_a_question_will_do() -> None:
    tables = dated(ranking([.9], [.8]), classes={0: ["temporal", "update"], 1: ["factual"]})
    assert questions_of(tables, ["update"])["question"].to_list() == [0]
    assert questions_of(tables, [])["question"].to_list() == [0, 1]
    none = pl.DataFrame(schema={"question": pl.Int32, "unit": pl.Int64})
    assert flag_units(tables, none, ["update"], 1.0)["value"].to_list() == [0.0, 1.0]
