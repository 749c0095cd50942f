"""Pools of memories with their token vectors, which a live memory keeps from question to question."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from memlab.models.local.late_interaction import Products
from memlab.models.protocols import Ints, TokenMatcher
from memlab.search.as_of import MemoryPool, memory_pools, of_kinds
from memlab.search.placed_tokens import PlacedTokens, place, place_of
from memlab.search.places import Places
from memlab.store.token_vectors import TokenVectors
from memlab.tables import Tables, distinct_texts

MOST_PLACES = 4
"""Questions of one conversation are mostly asked on few days."""

Encode = Callable[[pl.DataFrame], TokenVectors]
"""Texts -> their token vectors."""


@dataclass(frozen=True, eq=False)
class TokenPool:
    """The memories of one kind in one corpus, by day, with their token vectors.

    rows: Those of ``memories``, with their days. texts: Token vectors of the distinct texts. text_of, memories,
    sessions: (n,) the text, the id and the session of each memory.
    """

    rows: MemoryPool
    texts: TokenVectors
    text_of: Ints
    memories: Ints
    sessions: Ints
    _places: dict[tuple[int, int], Places] = field(default_factory=dict, init=False)
    _placed: dict[tuple[str, Products], PlacedTokens] = field(default_factory=dict, init=False)

    def places(self, visible: int, gap: int) -> Places:
        """Return the first ``visible`` memories side by side; those of the latest calls are kept."""
        places = self._places.get((visible, gap))
        if places is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            places = self._places[visible, gap] = Places(self.sessions[:visible], self.memories[:visible], gap)
        return places

    def placed(self, matcher: TokenMatcher) -> PlacedTokens:
        """Return the token vectors on the device of a matcher's products; they are sent once."""
        at = place_of(matcher)
        if at not in self._placed:
            self._placed[at] = place(self.texts, *at)
        return self._placed[at]


def token_pools(tables: Tables, kinds: Sequence[str] | None, encode: Encode) -> list[TokenPool]:
    """Return a pool for each (corpus, kind) that has memories; MemlabError for a kind that no memory has."""
    memories = tables["memories"]
    pools = memory_pools(memories, kinds)
    searched = of_kinds(memories.with_row_index("row"), kinds)
    keys, key_of = distinct_texts(tables["texts"], searched["key_id"])
    text = np.zeros(memories.height, np.int64)  # the text of each memory
    text[searched["row"].to_numpy()] = key_of
    vectors, ids, sessions = encode(keys), memories["memory"].to_numpy(), session_numbers(memories)
    made = []
    for pool in pools:
        used, text_of = np.unique(text[pool.memories], return_inverse=True)
        made.append(TokenPool(pool, vectors.take(used), text_of, ids[pool.memories], sessions[pool.memories]))
    return made


class KeptTokenPools:
    """The pools of the latest table of memories. Searches may run side by side."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._memories = ""  # the digest of the memories of the pools
        self._pools: list[TokenPool] = []

    def of(self, tables: Tables, kinds: Sequence[str] | None, encode: Encode) -> list[TokenPool]:
        """Return ``token_pools``, made once for the same table of memories."""
        digest = tables.digest(("memories",))
        with self._lock:
            if digest != self._memories:
                self._memories, self._pools = "", []  # old blocks of vectors are not kept beside new ones
                self._pools = token_pools(tables, kinds, encode)
                self._memories = digest
            return self._pools

    def forget(self, left: pl.Series) -> None:  # noqa: ARG002  (all that is kept is made again)
        """Forget the pools."""
        with self._lock:
            self._memories, self._pools = "", []


def session_numbers(memories: pl.DataFrame) -> Ints:
    """Return a number for the session of each memory, (n,)."""
    both = memories.select("corpus", "session")
    return both.select(pl.struct("corpus", "session").rank("dense")).to_series().to_numpy().astype(np.int64)
