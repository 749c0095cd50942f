"""Pools of memories with their token vectors, in main memory or on a GPU.

Vectors travel to a GPU as they are stored, in as few bytes as that takes, and are widened there. A pool that takes at
most half of the free memory is sent once for all its questions; of a larger one each piece is sent when it is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from memlab.models.local.backend import free_bytes, to_device
from memlab.models.local.batching import attempt
from memlab.models.local.late_interaction import Products
from memlab.models.protocols import Floats, Ints, TokenMatcher
from memlab.pipeline.tables import Tables, distinct_texts
from memlab.stages.search.hits import MemoryPool, memory_pools, of_kinds
from memlab.store import token_vectors
from memlab.store.token_vectors import TokenBlock, TokenVectors

if TYPE_CHECKING:
    import torch

class Places:
    """A line with a column for each of n memories, by session, then by id, and ``gap`` empty ones between sessions.

    Args:
        sessions: (n,) the session of each memory.
        ids: (n,) the id of each memory.
        gap: Columns before, between and behind the sessions.

    Attributes:
        width: Columns.
        column: (n,) the column of each memory.
        memory: (width,) the memory of each column, n for an empty one.
        begins, ends: (s,) the columns of each session.
    """

    def __init__(self, sessions: Ints, ids: Ints, gap: int) -> None:
        order = np.lexsort((ids, sessions))
        starts = np.flatnonzero(np.diff(sessions[order], prepend=-1))
        lengths = np.diff(np.append(starts, len(order)))
        self.gap, self.width = gap, len(order) + gap * (len(starts) + 1)
        self.begins = starts + gap * np.arange(1, len(starts) + 1)
        self.ends = self.begins + lengths
        columns = np.arange(len(order)) + gap * np.repeat(np.arange(1, len(starts) + 1), lengths)
        self.column = np.empty(len(order), np.int64)
        self.column[order] = columns
        self.memory = np.full(self.width, len(order), np.int64)
        self.memory[columns] = order

    def in_window(self, matches: Floats) -> Floats:
        """Return the best matches (t, width) among those up to ``gap`` columns away; empty columns are -inf.

        The values of empty columns mean nothing.
        """
        wide = matches.copy()
        for step in range(1, self.gap + 1):
            np.maximum(wide[:, step:], matches[:, :-step], out=wide[:, step:])
            np.maximum(wide[:, :-step], matches[:, step:], out=wide[:, :-step])
        return wide

    def in_sessions(self, matches: Floats, sessions: Ints) -> Floats:
        """Return the best matches (t, m) of the tokens in each of m sessions, from matches (t, width)."""
        edges = np.stack([self.begins[sessions], self.ends[sessions]], axis=1).ravel()
        if len(edges) and edges[-1] == self.width:  # to the end of the line
            edges = edges[:-1]
        return np.maximum.reduceat(matches, edges, axis=1)[:, ::2]

    def around(self, columns: Ints) -> Ints:
        """Return the columns with memories up to ``gap`` columns from some columns (m,), each once, ascending."""
        near = np.unique(columns[:, None] + np.arange(-self.gap, self.gap + 1))
        return near[self.memory[near] < len(self.column)]

    def of_sessions(self, sessions: Ints) -> Ints:
        """Return the columns of some sessions."""
        parts = [np.arange(begin, end) for begin, end in zip(self.begins[sessions], self.ends[sessions])]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)


SENT = 1 << 18
"""Token vectors that are copied to a GPU at a time: 400 MB of 384 numbers in fp32."""

CACHED = 1 << 11
"""Token vectors that are gathered, widened and multiplied at a time on a CPU, whose caches hold them: 3 MB in fp32.
136,000 vectors of 384 numbers times 16 columns take 17 ms from int8 and 23 from fp32, and 35 and 26 by 65,536 vectors.
"""


@dataclass(frozen=True)
class StoredTokens:
    """Some token vectors (t, dim), or their codes of so many bits per number; scales (t,) unless all are 1."""

    vectors: torch.Tensor
    scales: torch.Tensor | None
    bits: int

    @classmethod
    def of(cls, block: TokenBlock) -> StoredTokens:
        """Return the tokens of a block, which are not copied."""
        import torch

        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            vectors = torch.from_numpy(block.vectors)
            return cls(vectors, torch.from_numpy(block.scales) if block.vectors.dtype.kind != "f" else None, block.bits)

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, at: slice | Ints) -> StoredTokens:
        """Return the tokens of a slice, or those at some positions."""
        if isinstance(at, slice):
            return replace(self, vectors=self.vectors[at], scales=None if self.scales is None else self.scales[at])
        rows = to_device(at, str(self.vectors.device))  # gathered by all threads, where numpy takes one
        return replace(self, vectors=self.vectors.index_select(0, rows),
                       scales=None if self.scales is None else self.scales.index_select(0, rows))

    def to(self, device: str) -> StoredTokens:
        """Return the tokens on a device; a GPU copies them from pinned memory while the next ones are gathered."""
        return replace(self, vectors=to_device(self.vectors, device),
                       scales=None if self.scales is None else to_device(self.scales, device))

    def products(self, at: slice | Ints, columns: torch.Tensor) -> torch.Tensor:
        """Return the products (t, c) of some tokens with columns (dim, c), rotated if the tokens are quantised."""
        import torch

        tokens = at.stop - at.start if isinstance(at, slice) else len(at)
        step = CACHED if self.vectors.device.type == "cpu" else max(1, tokens)
        products = torch.empty((tokens, columns.shape[1]), dtype=columns.dtype, device=columns.device)
        for first in range(0, tokens, step):
            end = min(first + step, tokens)
            some = self.take(slice(at.start + first, at.start + end) if isinstance(at, slice) else at[first:end])
            numbers = (token_vectors.decode(some.vectors, some.bits) if some.bits else some.vectors).to(columns.dtype)
            part = torch.mm(numbers, columns, out=products[first:end])
            if some.scales is not None:
                part *= some.scales[:, None]
        return products


@dataclass(frozen=True)
class PlacedTokens:
    """The token vectors of some texts, and the device and number format of the products with them.

    held: The vectors on the device, with where each text lies among them; None: each piece is sent when it is used.
    """

    texts: TokenVectors
    device: str = "cpu"
    products: Products = "fp32"
    held: tuple[StoredTokens, TokenVectors] | None = None

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Ints) -> PlacedTokens:
        """Return some of the texts; no vector is copied."""
        held = self.held and (self.held[0], self.held[1].take(rows))
        return replace(self, texts=self.texts.take(rows), held=held)

    def pieces(self, tokens: int) -> Iterator[tuple[Ints, Ints, StoredTokens, slice | Ints]]:
        """Yield (rows (b,), where each starts (b + 1,), tokens on the device, which of them), about so many at a time.

        What lies in main memory is not copied.
        """
        held, where = self.held or (None, self.texts)
        for rows, starts, block, at in where.spans(tokens):
            stored = StoredTokens.of(self.texts.blocks[block]) if held is None else held
            if held is None and self.device != "cpu":
                stored = stored.take(at).to(self.device)
                at = slice(0, len(stored))
            yield rows, starts, stored, at

    def in_main_memory(self) -> PlacedTokens:
        """Return the same vectors for products on the CPU."""
        return PlacedTokens(self.texts)


def place_of(matcher: TokenMatcher) -> tuple[str, Products]:
    """Return the device and number format of a matcher's products; the CPU and fp32 for one that does not say."""
    return matcher.matches_on() if hasattr(matcher, "matches_on") else ("cpu", "fp32")


def place(texts: TokenVectors, device: str, products: Products) -> PlacedTokens:
    """Return token vectors for products on a device, which holds them if they fit."""
    streamed = PlacedTokens(texts, device, products)
    if device == "cpu" or 2 * _bytes(texts) > free_bytes(device):
        return streamed
    return replace(streamed, held=attempt(partial(_send_all, streamed)))


def _bytes(texts: TokenVectors) -> int:
    """Return the bytes of the vectors of some texts and of their scales."""
    blocks = np.array([block.vectors.itemsize * block.vectors.shape[1] + 4 for block in texts.blocks], np.int64)
    return int((blocks[texts.block_of] * texts.lengths).sum())


def _send_all(streamed: PlacedTokens) -> tuple[StoredTokens, TokenVectors] | None:
    """Return all vectors concatenated on the device, and the offset of each text."""
    total, end = int(streamed.texts.lengths.sum()), 0
    begins, held = np.zeros(len(streamed), np.int64), None
    for rows, starts, piece, _ in streamed.pieces(SENT):  # each alone on the device
        if held is None:
            held = StoredTokens(piece.vectors.new_empty((total, piece.vectors.shape[1])),
                                None if piece.scales is None else piece.scales.new_empty(total), piece.bits)
        held.vectors[end:end + len(piece.vectors)] = piece.vectors
        if held.scales is not None and piece.scales is not None:
            held.scales[end:end + len(piece.scales)] = piece.scales
        begins[rows] = end + starts[:-1]
        end += int(starts[-1])
    if held is None:
        return None
    return held, TokenVectors((), np.zeros(len(streamed), np.int64), begins, streamed.texts.lengths)


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
        """Return the first ``visible`` memories as one block; the blocks of the latest calls are cached."""
        places = self._places.get((visible, gap))
        if places is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            places = self._places[visible, gap] = Places(self.sessions[:visible], self.memories[:visible], gap)
        return places

    def place_on(self, matcher: TokenMatcher) -> PlacedTokens:
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


def session_numbers(memories: pl.DataFrame) -> Ints:
    """Return a number for the session of each memory, (n,)."""
    both = memories.select("corpus", "session")
    return both.select(pl.struct("corpus", "session").rank("dense")).to_series().to_numpy().astype(np.int64)
