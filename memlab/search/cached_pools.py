"""The pools of a live memory's memories with what a search has made of them, cached between questions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import polars as pl

from memlab.models.protocols import Ints
from memlab.runtime.latest import Latest
from memlab.search.hits import MemoryPool, refuse_unknown_kinds
from memlab.store.part import MEMORIES, Part
from memlab.tables import Tables

PARTS = 16
"""Tables of memories whose pools are cached, the whole and parts of it: some bytes for each memory."""

_Pool = TypeVar("_Pool", bound="Pool")


class Pool(Protocol):
    """The memories of one kind in one corpus, with what a search needs of them."""

    @property
    def rows(self) -> MemoryPool:
        """The memories, as rows of their table."""
        ...

    def part(self: _Pool, numbers: Ints) -> _Pool:
        """Return the pool of what a filter has left (``Part.numbers``)."""
        ...


Make = Callable[[Tables], list[_Pool]]
"""All pools of some tables."""


class CachedPools(Generic[_Pool]):
    """The pools of the latest table of memories, and of the latest parts of it. Safe for concurrent searches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whole = ""  # the digest of the latest memories that were no part
        self._alone = 0  # memories of the parts that were made alone
        self._pools = Latest[list[_Pool]](PARTS)

    def of(self, tables: Tables, kinds: Sequence[str] | None, make: Make[_Pool], part: Part | None = None
           ) -> list[_Pool]:
        """Return the pools of the memories of these kinds, made once for the same table of memories.

        Those of a ``part`` are selected among those of the whole; the first parts are made alone while they are less
        than half of it together. Raises MemlabError for a kind that no memory has.
        """
        def select() -> list[_Pool]:
            if part is None or not part.fits(tables) or self._is_quicker_alone(part, kinds):
                return make(tables)
            left = [pool.part(part.numbers()) for pool in self._get(part.whole, kinds, lambda: make(part.whole))]
            left = [pool for pool in left if len(pool.rows.memories)]
            refuse_unknown_kinds(kinds, [pool.rows.kind for pool in left])
            return left

        with self._lock:
            whole = (tables if part is None else part.whole).digest(MEMORIES)
            if whole != self._whole:
                self._pools.clear()  # old blocks of vectors are freed before new ones
                self._whole, self._alone = whole, 0
            return self._get(tables, kinds, select)

    def _get(self, tables: Tables, kinds: Sequence[str] | None, make: Callable[[], list[_Pool]]) -> list[_Pool]:
        return self._pools.get(_key(tables, kinds), make)

    def _is_quicker_alone(self, part: Part, kinds: Sequence[str] | None) -> bool:
        """Return whether the whole has no pools yet, and this part and those before it are less than half of it."""
        if _key(part.whole, kinds) in self._pools:
            return False
        self._alone += len(part.rows["memories"])
        return self._alone < part.whole["memories"].height // 2

    def forget(self, left: pl.Series) -> None:  # noqa: ARG002  (the cache is rebuilt)
        """Forget the pools."""
        with self._lock:
            self._pools.clear()
            self._whole = ""


def _key(tables: Tables, kinds: Sequence[str] | None) -> tuple[str, tuple[str, ...] | None]:
    return tables.digest(MEMORIES), kinds if kinds is None else tuple(kinds)
