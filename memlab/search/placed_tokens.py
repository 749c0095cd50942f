"""Stored token vectors in the place where they are multiplied: main memory, or the memory of a GPU.

Vectors travel to a GPU as they are stored, in as few bytes as that takes, and are widened there. A pool that takes at
most half of the free memory is sent once for all its questions; of a larger one each piece is sent when it is used.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from memlab.models.local.backend import free_bytes, to_device
from memlab.models.local.batching import attempt
from memlab.models.local.late_interaction import Products
from memlab.models.protocols import Ints, TokenMatcher
from memlab.store import bit_codes
from memlab.store.token_vectors import TokenBlock, TokenVectors

if TYPE_CHECKING:
    import torch

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
        """Return the products (t, c) of some tokens with columns (dim, c), which are turned where these are codes."""
        import torch

        tokens = at.stop - at.start if isinstance(at, slice) else len(at)
        step = CACHED if self.vectors.device.type == "cpu" else max(1, tokens)
        products = torch.empty((tokens, columns.shape[1]), dtype=columns.dtype, device=columns.device)
        for first in range(0, tokens, step):
            end = min(first + step, tokens)
            some = self.take(slice(at.start + first, at.start + end) if isinstance(at, slice) else at[first:end])
            numbers = (bit_codes.decode(some.vectors, some.bits) if some.bits else some.vectors).to(columns.dtype)
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
    """Return all vectors end to end on the device, and where each text lies."""
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
