"""Buffered writer of token vectors: checked as they come, stored in large blocks, finite numbers only."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.models.protocols import Floats, Ints, Role, TokenMatcher, text_costs
from memlab.runtime.progress import progress
from memlab.store.token_vectors import Precision, TokenBlock, make_block
from memlab.store.writer import model_name


class Blocks(Protocol):
    """Takes blocks of token vectors to keep."""

    def add(self, block: TokenBlock) -> None:
        """Store a block."""


class TokenWriter:
    """Encodes texts and stores their token vectors; ``stored`` counts the texts.

    Args:
        blocks: Where they are stored.
        matcher: The model.
        role: Whether the texts are queries or documents.
        precision: The number format in which they are stored.
        flush_bytes: A block is written when it holds this many bytes of fp32,
        flush_seconds: or when the last write was this long ago.
    """

    def __init__(self, blocks: Blocks, matcher: TokenMatcher, role: Role, precision: Precision,
                 flush_bytes: float, flush_seconds: float) -> None:
        self.blocks, self.matcher, self.role, self.precision = blocks, matcher, role, precision
        self.flush_bytes, self.flush_seconds = flush_bytes, flush_seconds
        self.stored = 0
        self._at: list[int] = []
        self._ids: list[Ints] = []
        self._matrices: list[Floats] = []
        self._bytes, self._since = 0, time.monotonic()

    def write(self, keys: NDArray[np.uint64], texts: Sequence[str]) -> None:
        """Encode texts with these keys (n, 2); what came before an error or an interrupt is stored too.

        Raises MemlabError for a vector that is not finite, a text without a token or without vectors, or other counts
        of vectors and tokens.
        """
        name, costs, done = model_name(self.matcher), text_costs(self.matcher, texts), np.zeros(len(texts), bool)
        try:
            with progress(name, len(texts), "texts", cost=float(costs.sum(dtype=np.float64)), loads=True) as step:
                for positions, ids, matrices in self.matcher.token_vectors(texts, self.role):
                    for i, row, matrix in zip(positions.tolist(), ids, matrices, strict=True):
                        self._check(name, texts[i], row, matrix)
                        self._at.append(i)
                        self._ids.append(row)
                        self._matrices.append(matrix)
                        self._bytes += matrix.nbytes
                    done[positions] = True
                    step(len(positions), "", float(costs[positions].sum(dtype=np.float64)))
                    if self._bytes >= self.flush_bytes or time.monotonic() - self._since >= self.flush_seconds:
                        self._flush(keys)
        finally:
            self._flush(keys)
        if not done.all():
            raise MemlabError(f"{name} gave nothing for {np.count_nonzero(~done)} of {len(texts)} texts, first for "
                              f"{texts[int(np.argmin(done))]!r:.120}")

    def _check(self, name: str, text: str, ids: Ints, matrix: Floats) -> None:
        if matrix.ndim != 2 or len(matrix) != len(ids) or not len(ids):
            raise MemlabError(f"{name} gave token vectors of shape {matrix.shape} for {len(ids)} tokens of "
                              f"{text!r:.80}")
        if not np.isfinite(matrix).all():
            raise MemlabError(f"{name} gave a token vector that is not finite for {text!r:.120}",
                              fix="use a wider dtype (float32) or another model; other texts are stored")

    def _flush(self, keys: NDArray[np.uint64]) -> None:
        if self._at:
            at, ids, matrices = self._at, self._ids, self._matrices
            self._at, self._ids, self._matrices, self._bytes = [], [], [], 0
            self.blocks.add(make_block(keys[at], ids, matrices, self.precision))
            self.stored += len(at)
        self._since = time.monotonic()
