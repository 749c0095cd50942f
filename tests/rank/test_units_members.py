"""Units that a live memory keeps, compared with those that are made anew."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from memlab.rank.score import RoutedScore, Score, project
from memlab.rank.units import FROM, CachedMembers, Members
from memlab.store import Store
from memlab.tables import Tables
from tests.rank.rankings import hits, world


class Keeping(Store):
    """A store that keeps indexes, as that of a live memory does."""

    caches_indexes = True

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict = {}

    def index(self, key, make):
        return self.objects.setdefault(key, make())


FOUND = [(0, "d:turn", 2, .9, 1), (0, "d:turn", 0, .1, 2), (0, "l:session", 101, 5.0, 1), (1, "l:session", 103, 3.0, 1),
         (1, "d:turn", 6, .5, 1)]


@pytest.mark.parametrize("stage", [Score(), Score(level="session"), Score(level="turn", method="rrf"),
                                   RoutedScore(routes={"counting": Score(method="rrf")})])
def test_kept_units_rank_as_those_that_are_made_anew(stage: Score | RoutedScore) -> None:
    store = Keeping()
    for some in (FOUND, FOUND[:2], FOUND[2:4], FOUND[4:], FOUND, [*FOUND, (0, "d:turn", 9999, .5, 3)]):
        tables = world().updated({"hits": hits(*some)})
        tables.digest(FROM)
        new, kept = (stage.run(tables.only(stage.reads), one) for one in (Store(), store))
        assert "members" in store.objects
        for name in ("units", "ranking"):
            assert_frame_equal(kept[name], new[name])


def test_units_of_tables_that_were_made_for_the_question_are_not_kept() -> None:
    store, tables = Keeping(), world().updated({"hits": hits(*FOUND)})
    tables.digest(FROM)
    Score().run(tables.updated({"memories": tables["memories"].head(9)}), store)
    assert not store.objects


def test_other_memories_have_other_units_and_a_memory_is_made_once() -> None:
    kept, calls = CachedMembers(), []

    def counted(memories: pl.DataFrame, tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
        calls.append(memories["kind"].unique().to_list())
        return project("turn", memories, tables)

    tables, hit = world(), pl.Series("memory", [2, 0])
    one = kept.of("turn", counted, hit, tables)
    assert kept.of("turn", counted, hit, world()) is one
    assert kept.of("turn", counted, pl.Series("memory", [2, 101]), tables) is not one
    assert [sorted(kinds) for kinds in calls] == [["turn"], ["session", "turn"]]
    fewer = tables.updated({"turns": tables["turns"].filter(pl.col("session") > 0)})
    assert kept.of("turn", counted, hit, fewer).units.height == 4
    kept.forget(pl.Series("text_id", [], pl.String))
    kept.of("turn", counted, hit, tables)
    assert len(calls) == 4


def test_units_of_a_part_are_kept_while_the_whole_is_the_same() -> None:
    kept, tables, hit = CachedMembers(), world(), pl.Series("memory", [0])
    part = tables.updated({"turns": tables["turns"].filter(pl.col("session") > 0)})
    make = partial(project, "turn")
    first = kept.of("turn", make, hit, part, tables)
    whole = kept.of("turn", make, hit, tables)
    assert first.units.height < whole.units.height
    assert kept.of("turn", make, hit, part, tables) is first
    kept.of("turn", make, hit, part)  # it is the whole now
    assert kept.of("turn", make, hit, part, tables) is not first


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=20, unique=True), st.data())
def test_each_hit_gets_all_units_of_its_memory(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    table = pl.DataFrame(pairs, schema={"memory": pl.Int64, "unit": pl.Int64}, orient="row")
    asked = data.draw(st.lists(st.integers(-1, 8), max_size=9))
    rows = pl.DataFrame({"memory": asked, "score": np.arange(len(asked)) * 0.5}, schema={"memory": pl.Int64,
                                                                                       "score": pl.Float64})
    order = ["score", "unit"]
    assert_frame_equal(Members.of(pl.DataFrame(), table).by_unit(rows).sort(order),
                       rows.join(table, on="memory").sort(order))
