"""The pools of a live memory's memories with what a search has made of them, cached between questions."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import polars as pl

from memlab.runtime.latest import Latest
from memlab.tables import Tables

MEMORIES = ("memories",)

PARTS = 16
"""Tables of memories whose pools are cached, the whole and what filters leave of it: some bytes for each memory."""

_Pool = TypeVar("_Pool")


class CachedPools(Generic[_Pool]):
    """The pools of a live memory's memories, and of what filters leave of them. Safe for concurrent searches."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._whole = ""  # the digest of the latest memories before any filter
        self._pools = Latest[list[_Pool]](PARTS)

    def of(self, tables: Tables, kinds: Sequence[str] | None, make: Callable[[], list[_Pool]],
           whole: Tables | None = None) -> list[_Pool]:
        """Return the pools of the memories of these kinds, made once for the same table of memories.

        whole: the tables of which a filter has left these; others drop what is cached.
        """
        with self._lock:
            latest = (tables if whole is None else whole).digest(MEMORIES)
            if latest != self._whole:
                self._pools.clear()  # old blocks of vectors are freed before new ones
                self._whole = latest
            return self._pools.get((tables.digest(MEMORIES), kinds if kinds is None else tuple(kinds)), make)

    def forget(self, left: pl.Series) -> None:  # noqa: ARG002  (the cache is rebuilt)
        """Forget the pools."""
        with self._lock:
            self._pools.clear()
            self._whole = ""
