"""Token vectors as they are stored and multiplied: formats of numbers, and quantised values in the rotated basis.

Codes have 2 or 4 bits per number: a vector is rotated, and rounded to a few levels. After a random rotation the
numbers of any vector are nearly normal, so that one table of levels suits all vectors: nothing is trained, and a code
depends on its own vector alone (Zandieh et al., TurboQuant, 2025, arXiv 2504.19874). The scale makes the inner product
of a vector with its own code exact (Gao & Long, RaBitQ, SIGMOD 2024).

A text has one unit vector for each token that counts, in blocks that may be memory-mapped. A vector is stored as fp32,
as fp16, or with one fp32 scale as int8 (its largest number is 127 times the scale) or as a code of 4 or 2 bits per
number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints
from memlab.support.errors import MemlabError

if TYPE_CHECKING:
    import torch

UPPER_LEVELS = {
    2: [0.4528, 1.510],
    4: [0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733],
}
"""Bits -> the levels above 0 with the least squared error for a normal number (Max, 1960, table I)."""


def levels(bits: int) -> Floats:
    """Return all levels, (2**bits,), ascending.

    >>> levels(2).round(2)
    array([-1.51, -0.45,  0.45,  1.51], dtype=float32)
    """
    upper = np.array(UPPER_LEVELS[bits], np.float32)
    return np.concatenate([-upper[::-1], upper])


@lru_cache(maxsize=4)
def rotation(dim: int) -> Floats:
    """Return the rotation (dim, dim) of all vectors of a length: ``vectors @ rotation(dim)`` rotates them.

    It is the orthogonal factor of a fixed random matrix, with the signs that make it the same with every library.
    """
    orthogonal, upper = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))
    rotated: Floats = (orthogonal * np.sign(np.diag(upper))).astype(np.float32)
    return rotated


def encode(vectors: Floats, bits: int) -> tuple[NDArray[np.uint8], Floats]:
    """Return the codes (t, dim * bits / 8) of vectors (t, dim), and the scale of each (t,).

    Raises MemlabError if the codes of a vector do not fill its last byte.
    """
    count, dim = vectors.shape
    per_byte = 8 // bits
    if dim % per_byte:
        raise MemlabError(f"vectors of {dim} numbers do not fill whole bytes of {bits} bits each",
                          where="search.late.precision", fix="int8")
    rotated = vectors @ rotation(dim)
    lengths = np.linalg.norm(rotated, axis=1, keepdims=True)
    table = levels(bits)
    numbers = np.searchsorted((table[1:] + table[:-1]) / 2, rotated / np.maximum(lengths, 1e-12) * dim**0.5)
    match = (table[numbers] * rotated).sum(axis=1)  # the inner product of a vector with its code
    scales = np.divide(lengths[:, 0] ** 2, match, out=np.zeros(count, np.float32), where=match > 0)
    shifts = (np.arange(per_byte) * bits).astype(np.uint8)
    codes = (numbers.astype(np.uint8).reshape(count, dim // per_byte, per_byte) << shifts).sum(axis=2, dtype=np.uint8)
    return codes, scales.astype(np.float32)


def decode(codes: torch.Tensor, bits: int) -> torch.Tensor:
    """Return the quantised values of codes (t, w), unscaled, in the rotated basis: (t, w * 8 / bits)."""
    return _bytes(bits, str(codes.device)).index_select(0, codes.flatten().int()).reshape(len(codes), -1)


@lru_cache(maxsize=16)
def _bytes(bits: int, device: str) -> torch.Tensor:
    """Return the levels of each byte, (256, 8 / bits), on a device."""
    import torch

    numbers = np.arange(256)[:, None] >> np.arange(8 // bits) * bits
    return torch.from_numpy(levels(bits)[numbers & (2**bits - 1)]).to(device)


Precision = Literal["fp32", "fp16", "int8", "4bit", "2bit"]

DTYPES: dict[Precision, np.dtype[Any]] = {
    "fp32": np.dtype("<f4"), "fp16": np.dtype("<f2"), "int8": np.dtype("i1"), "4bit": np.dtype("u1"),
    "2bit": np.dtype("u1")}

BITS: dict[Precision, int] = {"fp32": 0, "fp16": 0, "int8": 0, "4bit": 4, "2bit": 2}
"""Bits per number of codes; 0 for plain numbers."""


WIDE = 512
"""Numbers of a token vector above which it is stored as fp16 by default: bge-m3's 1,024 take 4
kB a token in fp32, MiniLM's 384 take 1.5 kB."""


def usual_precision(width: int | None) -> Precision:
    """Return the number format in which vectors of so many numbers are stored; None: of an unknown number.

    >>> usual_precision(384), usual_precision(1024), usual_precision(None)
    ('fp32', 'fp16', 'fp32')
    """
    return "fp32" if width is None or width <= WIDE else "fp16"


def keep_pages() -> None:
    """Leave pages as they are: nothing is mapped, or the system takes it back where memory is short."""


@dataclass(frozen=True)
class TokenBlock:
    """Some texts with their tokens concatenated; text i has the tokens ``starts[i]:starts[i + 1]``.

    keys: (n, 2) the halves of each text's hash. starts: (n + 1,). ids: (t,) vocabulary ids.
    scales: (t,) the factor of each vector, 1 where numbers are fp32 or fp16. vectors: (t, dim), or (t, dim * bits / 8)
    with codes of so many bits per number. release: takes mapped pages out of the memory of the process, which may be
    done at any time, and is done after each piece that is read.
    """

    keys: NDArray[np.uint64]
    starts: Ints
    ids: NDArray[np.int32]
    scales: Floats
    vectors: NDArray[Any]
    bits: int = 0
    release: Callable[[], None] = keep_pages

    @classmethod
    def of(cls, arrays: Sequence[NDArray[Any]], bits: int = 0, release: Callable[[], None] = keep_pages) -> TokenBlock:
        """Return the block of a segment's arrays."""
        keys, starts, ids, scales, vectors = arrays
        return cls(keys, starts, ids, scales, vectors, bits, release)

    @property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The arrays of a segment."""
        return self.keys, self.starts, self.ids, self.scales, self.vectors

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return self.vectors.shape[1] * 8 // self.bits if self.bits else self.vectors.shape[1]

    def take(self, rows: Ints) -> TokenBlock:
        """Return a copy with only some of the texts."""
        starts, tokens = gather_tokens(self.starts[rows], np.diff(self.starts)[rows])
        return TokenBlock(self.keys[rows], starts, self.ids[tokens], self.scales[tokens], self.vectors[tokens],
                          self.bits)

    def widen(self, at: slice | Ints) -> Floats:
        """Return the vectors of some tokens in fp32, (t, dim)."""
        vectors, scales = self.vectors[at], self.scales[at, None]
        if not self.bits:
            return vectors.astype(np.float32) * scales
        import torch

        rotated = decode(torch.from_numpy(np.array(vectors)), self.bits).numpy()
        return (rotated * scales) @ rotation(self.dim).T


def gather_tokens(begins: Ints, lengths: Ints) -> tuple[Ints, Ints]:
    """Return where texts start end to end (n + 1,), and the positions of their tokens (t,) in their block.

    >>> gather_tokens(np.array([5, 0]), np.array([2, 1]))
    (array([0, 2, 3]), array([5, 6, 0]))
    """
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts, np.arange(starts[-1]) + np.repeat(begins - starts[:-1], lengths)


def make_block(keys: NDArray[np.uint64], ids: Sequence[Ints], matrices: Sequence[Floats],
               precision: Precision) -> TokenBlock:
    """Return the block of texts with these token ids, (t_i,) each, and unit vectors, (t_i, dim) each."""
    starts = np.concatenate([[0], np.cumsum([len(matrix) for matrix in matrices])]).astype(np.int64)
    vectors, scales = quantise(np.concatenate(matrices), precision)
    return TokenBlock(keys, starts, np.concatenate(ids).astype(np.int32), scales, vectors, BITS[precision])


def quantise(vectors: Floats, precision: Precision) -> tuple[NDArray[Any], Floats]:
    """Return vectors (t, dim) in a number format, and their scales (t,).

    Raises MemlabError for a number of dimensions that the format does not allow.

    >>> quantise(np.array([[0.5, -1.0]], np.float32), "int8")[0].tolist()
    [[64, -127]]
    """
    if bits := BITS[precision]:
        return encode(vectors, bits)
    if precision != "int8":
        return vectors.astype(DTYPES[precision]), np.ones(len(vectors), np.float32)
    scales = (np.maximum(np.abs(vectors).max(axis=1, initial=0), 1e-12) / 127).astype(np.float32)
    return np.rint(vectors / scales[:, None]).astype(np.int8), scales


def merge(blocks: Sequence[TokenBlock]) -> TokenBlock:
    """Return one block with the texts of several, which are of one number format."""
    ends = np.cumsum([0, *(block.starts[-1] for block in blocks)])
    starts = np.concatenate([np.zeros(1, np.int64), *(b.starts[1:] + end for b, end in zip(blocks, ends))])
    return TokenBlock(np.concatenate([b.keys for b in blocks]), starts, np.concatenate([b.ids for b in blocks]),
                      np.concatenate([b.scales for b in blocks]), np.concatenate([b.vectors for b in blocks]),
                      blocks[0].bits)


@dataclass(frozen=True)
class TokenVectors:
    """The token vectors of n texts, in several blocks.

    block_of: (n,) the block of each text. begins, lengths: (n,) its first token there, and its number of tokens.
    """

    blocks: Sequence[TokenBlock]
    block_of: Ints
    begins: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, rows: Ints) -> TokenVectors:
        """Return the token vectors of some texts; no vector is copied."""
        return TokenVectors(self.blocks, self.block_of[rows], self.begins[rows], self.lengths[rows])

    def keys(self) -> NDArray[np.uint64]:
        """Return the halves of the hash of each text, (n, 2)."""
        keys = np.empty((len(self), 2), np.uint64)
        for number in np.unique(self.block_of):
            here, block = self.block_of == number, self.blocks[number]
            keys[here] = block.keys[np.searchsorted(block.starts, self.begins[here])]
        return keys

    def text(self, i: int) -> tuple[Ints, Floats]:
        """Return the token ids (t,) and vectors (t, dim) of a text."""
        block, at = self.blocks[self.block_of[i]], slice(self.begins[i], self.begins[i] + self.lengths[i])
        return block.ids[at].astype(np.int64), block.widen(at)

    def ids(self) -> tuple[Ints, Ints]:
        """Return the ids of all tokens (t,), and the text of each (t,), in no particular order of the texts."""
        ids, texts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for rows, starts, part in self.in_pieces(1 << 62, lambda block, at: block.ids[at]):
            ids.append(part.astype(np.int64))
            texts.append(np.repeat(rows, np.diff(starts)))
        return np.concatenate(ids), np.concatenate(texts)

    def pieces(self, tokens: int) -> Iterator[tuple[Ints, Ints, Floats]]:
        """Yield (rows (b,), where each starts (b + 1,), their vectors in fp32 (t, dim)); t is about ``tokens``."""
        yield from self.in_pieces(tokens, TokenBlock.widen)

    def in_pieces(self, tokens: int, part: Any) -> Iterator[tuple[Ints, Ints, Any]]:
        """Yield (rows, starts, ``part(block, its tokens)``) for the spans of about so many tokens."""
        for rows, starts, block, at in self.spans(tokens):
            yield rows, starts, part(self.blocks[block], at)

    def spans(self, tokens: int) -> Iterator[tuple[Ints, Ints, int, slice | Ints]]:
        """Yield (rows (b,), where each starts (b + 1,), their block, their tokens there), about so many tokens each.

        The tokens are a slice where texts follow each other in their block, and else positions. After each span mapped
        pages of its block leave the memory of the process.
        """
        order = np.lexsort((self.begins, self.block_of))
        piece = np.cumsum(self.lengths[order]) // tokens
        edges = np.flatnonzero(np.diff(self.block_of[order]) | np.diff(piece)) + 1
        for rows in np.split(order, edges) if len(order) else ():
            begins, lengths = self.begins[rows], self.lengths[rows]
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            follow = np.array_equal(begins, begins[0] + starts[:-1])
            at = slice(int(begins[0]), int(begins[0] + starts[-1])) if follow else gather_tokens(begins, lengths)[1]
            block = int(self.block_of[rows[0]])
            try:
                yield rows, starts, block, at
            finally:
                if self.blocks:  # none: the vectors are held elsewhere (memlab.stages.search.token_pools)
                    self.blocks[block].release()
