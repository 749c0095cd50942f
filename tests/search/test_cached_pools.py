"""Pools that a live memory caches: made once for the same memories, and for what a filter leaves of them."""

from __future__ import annotations

import polars as pl

from memlab.search.cached_pools import CachedPools
from memlab.search.hits import MemoryPool, memory_pools
from memlab.tables import Tables
from tests.search.world import day, world

MEMORIES = [(0, "tea", day(2), "turn"), (0, "cat", day(1), "turn"), (0, "sun", day(0), "turn"),
            (0, "sea", day(0), "session")]


def tables(memories=MEMORIES) -> Tables:
    return world(memories, [(0, "tea?", day(3))])


class Pools:
    """Cached pools, and how often some were made."""

    def __init__(self) -> None:
        self.cached, self.made = CachedPools[MemoryPool](), 0

    def of(self, tables: Tables, whole: Tables | None = None, kinds: tuple[str, ...] | None = None) -> list[MemoryPool]:
        def make() -> list[MemoryPool]:
            self.made += 1
            return memory_pools(tables["memories"], kinds)

        return self.cached.of(tables, kinds, make, whole)


def test_pools_are_made_once_for_the_same_memories_and_kinds() -> None:
    pools = Pools()
    first = pools.of(tables())
    assert pools.of(tables()) is first
    assert [pool.kind for pool in pools.of(tables(), kinds=("turn",))] == ["turn"]
    later = pools.of(tables([*MEMORIES, (0, "ship", day(0), "turn")]))
    assert sum(len(pool.memories) for pool in later) == len(MEMORIES) + 1
    pools.cached.forget(pl.Series("text_id", [], pl.String))
    assert len(pools.of(tables())) == 2
    assert pools.made == 4


def test_parts_are_cached_while_the_whole_is_the_same() -> None:
    pools, whole = Pools(), tables()
    part = whole.updated({"memories": whole["memories"].head(2)})
    first = pools.of(part, whole)
    pools.of(whole)
    assert pools.of(part, whole) is first
    assert pools.made == 2
    pools.of(part)  # it is the whole now, as after something was forgotten
    pools.of(part, whole)
    assert pools.made == 4
