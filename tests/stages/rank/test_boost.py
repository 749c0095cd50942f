"""Boosts by signals, and by the time that a question names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.pipeline.tables import SCHEMAS, Tables, frame
from memlab.stages.rank.boost import Boost, TimeWindowBoost
from memlab.stages.rank.signals import Importance
from memlab.stages.rank.units import memory_units, rank_units, session_units, turn_units
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.rank.rankings import ranking, world
from tests.stages.rank.signals.worlds import boosted, dated, order


@dataclass(frozen=True)
class Given:
    """A signal that says of units what it was given."""

    name: str
    told: tuple[tuple[int, float | None], ...]

    def values(self, tables: Tables) -> pl.DataFrame:
        ranked_units = set(tables["ranking"]["unit"])
        told = [(0, u, v) for u, v in self.told if u in ranked_units]
        return pl.DataFrame(told, orient="row", schema={"question": pl.Int32, "unit": pl.Int64, "value": pl.Float64})


def given_as(name: str, *values: float | None) -> Given:
    return Given(name, tuple(enumerate(values)))


THREE = ranking([.9, .5, .1], **{"dense:turn": [.2, .4, .9], "llm": [2.0, None, None]})


def by_unit(table: pl.DataFrame, column: str = "score") -> list[float | None]:
    return table.sort("unit")[column].to_list()


def test_signals_become_columns_and_are_mixed_with_the_first_score() -> None:
    got = boosted(dated(THREE), signals=[given_as("a", 0.0, None, 4.0)], weights={"first": 1, "a": .5},
                  normaliser="none")
    assert by_unit(got) == pytest.approx([.9, .5, 2.1])  # the null takes the lowest, 0
    assert got["unit"].to_list() == [2, 0, 1]
    assert by_unit(got, "a") == [0, None, 4]
    assert got["rank"].to_list() == [1, 2, 3]
    assert got.columns == [*THREE.columns, "a"]


def test_boosted_is_what_an_earlier_boost_kept_else_the_present_score() -> None:
    alone = boosted(dated(THREE), weights={"boosted": 2.0}, normaliser="none")
    assert by_unit(alone) == pytest.approx([1.8, 1.0, .2])
    assert alone.columns == THREE.columns
    kept = THREE.with_columns(pl.Series("boosted", [0.0, 7.0, 1.0]))
    assert order(dated(kept), weights={"boosted": 2.0}, normaliser="none") == [1, 2, 0]


def test_what_weights_do_not_name_does_not_count() -> None:
    signals = [given_as("a", 0, 0, 5), given_as("b", 0, 9, 0)]
    assert order(dated(THREE), signals=signals, weights={"b": 1}, normaliser="none") == [1, 0, 2]
    assert by_unit(boosted(dated(THREE), signals=signals, weights={"first": 2}, normaliser="none")) == pytest.approx(
        [1.8, 1.0, .2])
    assert order(dated(THREE), weights={"dense": 1}, normaliser="none") == [2, 1, 0]  # a column that was there


def test_without_weights_the_first_score_and_new_signals_count_but_not_lanes_flags_or_floors() -> None:
    signals = [given_as("a", 0, 1, 0), given_as("flag", 0, 0, 1), given_as("gate", 1, 1, 0)]
    got = boosted(dated(THREE), signals=signals, factors={"flag": 2}, floors={"gate": 1}, normaliser="none")
    assert got.select("unit", "score").rows() == [(1, 1.5), (0, .9)]


def test_fill_is_what_an_unreached_unit_has_and_the_column_keeps_its_nulls() -> None:
    got = boosted(dated(THREE), weights={"first": 1, "llm": .1}, fill={"llm": 3.0}, normaliser="none")
    assert by_unit(got) == pytest.approx([1.1, .8, .4])
    assert by_unit(got, "llm") == [2, None, None]
    lowest = boosted(dated(THREE), weights={"first": 1, "llm": .1}, normaliser="none")
    assert by_unit(lowest) == pytest.approx([1.1, .7, .3])


def test_equal_scores_keep_their_order() -> None:
    table = ranking([.9, .5, .1]).with_columns(unit=pl.Series([4, 0, 2], dtype=pl.Int64))
    assert order(dated(table), signals=[Given("a", ((0, 1.0), (2, 1.0), (4, 1.0)))], weights={"a": 1}) == [4, 0, 2]


def test_below_depth_the_old_order_follows_without_a_drop() -> None:
    got = boosted(dated(), signals=[given_as("a", 0, 0, 1, 9, 9, 9)], weights={"a": 1}, depth=3, normaliser="none")
    assert got["unit"].to_list() == [2, 0, 1, 3, 4, 5]
    assert got["a"].to_list() == [1, 0, 0, None, None, None]
    assert got["score"].to_list() == pytest.approx([1, 0, 0, -1e-6, -.100001, -.200001])


def test_with_a_threshold_or_floors_nothing_comes_back_from_below_depth() -> None:
    assert order(dated(), weights={"first": 1}, threshold=.55, depth=3, normaliser="none") == [0]
    assert order(dated(), weights={"first": 1}, threshold=.9, normaliser="none") == []
    assert order(dated(), floors={"first": .5}, depth=3, normaliser="none") == [0, 1]


def test_the_new_score_can_be_kept_for_a_later_slot() -> None:
    kept = boosted(dated(THREE), factors={"dense": 2}, normaliser="none", name="boosted", depth=2)
    assert by_unit(kept, "boosted") == pytest.approx([.9 * 1.2, .5 * 1.4, None])
    assert order(dated(kept), weights={"boosted": -1 + 2}, normaliser="none") == [0, 1, 2]


def test_a_stage_and_its_share_can_be_left_out_by_the_weight_0() -> None:
    how = {"signals": [given_as("a", 0, 0, 1)], "fill": {"rerank": .3}, "normaliser": {"rerank": "max", "a": "max"}}
    assert order(dated(THREE), weights={"first": 1, "a": 1, "rerank": 0}, **how) == [2, 0, 1]
    assert order(dated(THREE), weights={"first": 1, "a": 1, "rerank": 1}, **how) == [2, 0, 1]  # .3 for everyone
    with pytest.raises(MemlabError, match="no signal is called 'rerank'"):
        order(dated(THREE), weights={"first": 1, "a": 1, "rerank": 1}, **(how | {"fill": {}}))
    with pytest.raises(MemlabError, match="did you mean 'first'"):
        order(dated(THREE), weights={"fist": 1})


@pytest.mark.parametrize(("settings", "message"), [
    *((settings, "nothing to mix in") for settings in ({}, {"fill": {"llm": 1.0}}, {"name": "kept"})),
    ({"signals": [given_as("a", 1)] * 2}, "cannot be called 'a'"),
    ({"signals": [given_as("first", 1)]}, "cannot be called 'first'"), ({"signals": ["recency"]}, "Signal"),
    ({"weights": {"first": 0}}, "no weight is above 0")])
def test_settings_that_cannot_be_meant_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Boost(**settings)
    with pytest.raises(MemlabError, match="a signal 'llm' already"):
        order(dated(THREE), signals=[given_as("llm", 1)])


def test_an_empty_ranking_stays_empty() -> None:
    assert boosted(dated(THREE.clear()), signals=[Importance()], weights={"importance": 1}).is_empty()


columns = st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(
    st.integers(-40, 40).map(lambda i: i / 8) | st.none(), min_size=n, max_size=n)] * 2))


@given(columns, st.randoms(use_true_random=False))
def test_the_order_of_rows_changes_nothing_and_no_unit_is_lost(parts, random) -> None:
    tables = dated(rank_units(ranking([x or 0.0 for x in parts[0]])))
    stage = Boost(signals=[given_as("a", *parts[1])], weights={"first": 1, "a": 2}, depth=4)
    rows = list(range(tables["ranking"].height))
    random.shuffle(rows)
    mixed = tables.updated({"ranking": tables["ranking"][rows], "memories": tables["memories"].reverse()})
    one, two = (stage.run(t.only(stage.reads), Store())["ranking"] for t in (tables, mixed))
    assert one.equals(two)
    assert sorted(one["unit"]) == sorted(tables["ranking"]["unit"])
    assert one["rank"].to_list() == list(range(1, one.height + 1))
    assert one["score"].is_sorted(descending=True)
    assert dict(one.schema) == {**SCHEMAS["ranking"], "a": pl.Float64}


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
