"""Pools that a live memory caches: made once for the same memories, and selected where a filter leaves a part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.models.protocols import Ints
from memlab.query.where import Where, narrow
from memlab.search.cached_pools import CachedPools
from memlab.search.hits import MemoryPool, memory_pools
from memlab.store.part import Part
from memlab.tables import PLACED, Tables, empty, frame
from tests.search.world import day, world

MEMORIES = [(0, "tea", day(2), "turn"), (0, "cat", day(1), "turn"), (0, "sun", day(0), "turn"),
            (0, "sea", day(0), "session")]


@dataclass
class Named:
    """A pool with the keys of its memories."""

    rows: MemoryPool
    keys: list[str]
    selected: bool = False

    def part(self, numbers: Ints) -> Named:
        pool, left = self.rows.part(numbers)
        return Named(pool, [self.keys[n] for n in left], selected=True)


class Maker:
    """Makes pools, and counts how often."""

    def __init__(self, kinds: list[str] | None = None) -> None:
        self.calls, self.kinds = 0, kinds

    def __call__(self, tables: Tables) -> list[Named]:
        self.calls += 1
        keys = tables["memories"]["key_id"]
        return [Named(pool, keys.gather(pool.memories).to_list()) for pool in memory_pools(tables["memories"],
                                                                                           self.kinds)]


def tables(memories=MEMORIES) -> Tables:
    """A session for each memory."""
    found, sessions = world(memories, [(0, "tea?", day(3))]), range(len(memories))
    return found.updated({"sessions": frame("sessions", {"corpus": [0] * len(memories), "session": sessions}),
                          "memories": found["memories"].with_columns(pl.Series("session", sessions, pl.Int32)),
                          **{name: empty(name) for name in PLACED if name not in ("sessions", "memories")}})


def part_of(whole: Tables, keys: set[str]) -> Part:
    sessions = whole["memories"].filter(pl.col("key_id").is_in(
        whole["texts"].filter(pl.col("text").is_in(keys))["text_id"].implode()))["session"]
    left, rows = narrow(whole, np.isin(whole["sessions"]["session"].to_numpy(), sessions.to_numpy()), Where({}))
    return Part(whole, left, rows)


def test_pools_are_made_once_for_the_same_memories_and_kinds() -> None:
    cached, make = CachedPools[Named](), Maker()
    first = cached.of(tables(), None, make)
    assert cached.of(tables(), None, make) is first
    later = cached.of(tables([*MEMORIES, (0, "ship", day(0), "turn")]), None, make)
    assert sum(len(pool.keys) for pool in later) == len(MEMORIES) + 1
    assert [pool.rows.kind for pool in cached.of(tables(), ["turn"], Maker(["turn"]))] == ["turn"]
    cached.forget(pl.Series("text_id", [], pl.String))
    assert len(cached.of(tables(), None, make)) == 2
    assert make.calls == 3


def test_a_part_is_selected_among_the_whole_and_has_the_memories_that_its_tables_have() -> None:
    cached, make, whole = CachedPools[Named](), Maker(), tables()
    for keys in ({"tea", "sun"}, {"cat"}, {"sea", "tea"}):
        part = part_of(whole, keys)
        found, anew = cached.of(part.tables, None, make, part), Maker()(part.tables)
        assert [pool.keys for pool in found] == [pool.keys for pool in anew]
        for pool, other in zip(found, anew):
            assert pool.rows.memories.tolist() == other.rows.memories.tolist()
            assert pool.rows.days.tolist() == other.rows.days.tolist()
        assert all(pool.selected for pool in found)
    assert make.calls == 1


def test_parts_are_made_alone_while_they_are_less_than_half_of_the_whole() -> None:
    whole, cached, make = tables([*MEMORIES, *((0, f"text {n}", day(0), "turn") for n in range(8))]), CachedPools[
        Named](), Maker()
    selected = []
    for keys in ({"tea", "sun"}, {"cat", "sun"}, {"tea", "cat"}, {"cat"}):  # of 12: 2, 4, 6 ...
        part = part_of(whole, keys)
        selected += [pool.selected for pool in cached.of(part.tables, None, make, part)]
    assert (selected, make.calls) == ([False, False, True, True], 3)


def test_tables_that_a_stage_has_changed_are_no_part() -> None:
    cached, make, whole = CachedPools[Named](), Maker(), tables()
    part = part_of(whole, {"tea", "sun"})
    fewer = part.tables.updated({"memories": part.tables["memories"].head(1)})
    (pool,) = cached.of(fewer, None, make, part)
    assert (len(pool.keys), pool.selected) == (1, False)


def test_a_kind_that_a_filter_has_left_nothing_of_is_refused() -> None:
    part = part_of(tables(), {"tea"})
    with pytest.raises(MemlabError, match="no memory is of kind 'session'"):
        CachedPools[Named]().of(part.tables, ["session"], Maker(["session"]), part)
