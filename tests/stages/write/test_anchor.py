from __future__ import annotations

from datetime import datetime

import polars as pl
import pytest

from memlab.stages.systems.oltramem import ResolveBoth, ResolvePronouns
from memlab.stages.write.anchor import ResolveDates, split_notes
from memlab.stages.write.chunk import Levels, RoundChunker, SessionChunker, TurnChunker
from memlab.store import Store
from tests.stages.write.conversations import talk, written

# DAY is Saturday, 20 May 2023, 9:30; each further session is a day later
DIARY = talk([("user", "I bought a kayak last Friday."), ("assistant", "Enjoy!"), ("user", "Did I say it leaks?")],
             [("user", "I bought a kayak last Friday.")])
FRIENDS = talk([("user", "My sister Julia came yesterday.", "Ann"), ("user", "How is she?", "Bob"),
                ("user", "Fine!", "Ann")])


def memories(tables, chunk=None):
    return tables.updated((chunk or TurnChunker()).run(tables, Store()))


def anchored(stage, tables):
    return tables.updated(stage.run(tables.only(stage.reads), Store()))


@pytest.mark.parametrize("stage", [ResolveDates(), ResolvePronouns(), ResolveBoth(), ResolveDates(into="key"),
                                   ResolvePronouns(into="key", speakers=False)])
def test_twice_is_once_and_what_was_said_stays_in_front(stage):
    tables = memories(FRIENDS, Levels(chunkers=[TurnChunker(), RoundChunker(), SessionChunker()]))
    once = anchored(stage, tables)
    twice = anchored(stage, once)
    assert twice["memories"].equals(once["memories"])
    assert twice["texts"].equals(once["texts"])
    for column in ("key", "value"):
        for before, after in zip(written(tables, column), written(once, column)):
            assert after.startswith(before)
            assert split_notes(after)[0] == before
    fixed = ["memory", "corpus", "session", "turns", "kind", "source", "said_on", "valid_from", "valid_to"]
    assert once["memories"].select(fixed).equals(tables["memories"].select(fixed))


def test_dates_are_told_from_the_session_s_own_day_and_both_dates_are_kept():
    out = anchored(ResolveDates(), memories(DIARY))
    kayak = "I bought a kayak last Friday.\n[last Friday = 2023-05-19]"
    assert written(out) == [kayak, "Enjoy!", "Did I say it leaks?", kayak]
    assert written(out, "value")[0] == "user: I bought a kayak last Friday.\n[last Friday = 2023-05-19]"
    assert out["memories"]["happened_on"].to_list() == [datetime(2023, 5, 19), None, None, datetime(2023, 5, 19)]
    assert out["memories"]["said_on"].dt.day().to_list() == [20, 20, 20, 21]
    only_keys = anchored(ResolveDates(into="key"), memories(DIARY))
    assert written(only_keys, "value")[0] == "user: I bought a kayak last Friday."


def test_what_is_known_to_the_month_sets_no_day_and_a_day_that_is_known_stays():
    tables = memories(talk([("user", "We moved last month."), ("user", "We moved yesterday, and sold it today.")]))
    out = anchored(ResolveDates(), tables)["memories"]
    assert out["happened_on"].to_list() == [None, datetime(2023, 5, 19)]
    known = tables["memories"].with_columns(pl.lit(datetime(2020, 1, 1), dtype=pl.Datetime("us")).alias("happened_on"))
    kept = anchored(ResolveDates(), tables.updated({"memories": known}))["memories"]
    assert kept["happened_on"].unique().to_list() == [datetime(2020, 1, 1)]


def test_a_time_of_day_is_resolved_with_its_day():
    out = anchored(ResolveDates(), memories(talk([("user", "The dentist called yesterday at 5:30 pm to move it.")])))
    assert written(out)[0].endswith("[yesterday at 5:30 pm = 2023-05-19T17:30]")
    assert out["memories"]["happened_on"].to_list() == [datetime(2023, 5, 19)]


def test_nothing_to_resolve_changes_nothing():
    tables = memories(talk([("user", "Tea or coffee?"), ("assistant", "Tea."), ("user", "On 2023-05-01 I had tea.")]))
    for stage in (ResolveDates(), ResolvePronouns(), ResolveBoth()):
        out = anchored(stage, tables)
        assert out["memories"].drop("happened_on").equals(tables["memories"].drop("happened_on"))
        assert out["texts"].equals(tables["texts"])


def test_a_memory_without_a_day_is_left_alone():
    tables = memories(DIARY)
    undated = tables["memories"].with_columns(pl.lit(None, dtype=pl.Datetime("us")).alias("said_on"))
    tables = tables.updated({"memories": undated})
    assert anchored(ResolveDates(), tables)["memories"].equals(undated)


def test_persons_are_told_where_the_text_does_not_name_them():
    tables = memories(FRIENDS)
    assert written(anchored(ResolvePronouns(), tables)) == [
        "Ann: My sister Julia came yesterday.", "Bob: How is she?\n[she = Julia]", "Ann: Fine!"]
    silent = memories(FRIENDS, TurnChunker(speakers=False))
    assert written(anchored(ResolvePronouns(), silent))[0] == "My sister Julia came yesterday.\n[I = Ann]"
    assert written(anchored(ResolvePronouns(speakers=False), silent))[0] == "My sister Julia came yesterday."
    assert written(anchored(ResolvePronouns(reach=0), tables))[1] == "Bob: How is she?"
