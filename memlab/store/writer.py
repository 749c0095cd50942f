"""Buffered writers of model results: checked as they come, stored in large segments, finite numbers only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from memlab.models.protocols import Floats, Ints
from memlab.store.index import SegmentIndex
from memlab.store.segment import Arrays, Keys
from memlab.store.token_vectors import Precision, make_block
from memlab.support.errors import MemlabError
from memlab.support.progress import progress


def model_name(model: Any) -> str:
    """Return a model's display name: its attribute ``name``, else that in its identity.

    >>> from types import SimpleNamespace
    >>> model_name(SimpleNamespace(name="bge-small"))
    'bge-small'
    """
    name = getattr(model, "name", None)
    identity = {} if name else model.identity()
    return str(name or identity.get("model") or identity.get("is") or type(model).__name__)


class Writer:
    """Writes one model's results for n inputs to the store; ``stored`` counts them.

    Args:
        index: Where they are stored.
        keys: Keys of the inputs, (n, w).
        model: The model's name, for progress and errors.
        unit: The name of the inputs ("texts", "pairs").
        costs: Relative cost of each input (n,), for the time left.
        show: Returns input i as text, for an error.
        flush_bytes: A segment is written when the results hold this many bytes,
        flush_seconds: or when the last write was this long ago.
    """

    def __init__(self, index: SegmentIndex, keys: Keys, model: str, unit: str, costs: Floats,
                 show: Callable[[int], str], flush_bytes: float, flush_seconds: float) -> None:
        self.index, self.keys, self.model, self.unit, self.costs, self.show = index, keys, model, unit, costs, show
        self.flush_bytes, self.flush_seconds = flush_bytes, flush_seconds
        self.stored = 0
        self._at: list[Ints] = []
        self._bytes, self._since = 0, time.monotonic()

    def write(self, blocks: Iterator[Any], note: Callable[[], str] = lambda: "") -> None:
        """Store all blocks of a model; those that came before an error or an interrupt are stored too.

        Raises MemlabError if the model yields a value that is not finite, one of the wrong shape, or no value
        for an input; nothing of the faulty block is stored.
        """
        present = np.zeros(len(self.keys), bool)
        try:
            with progress(self.model, len(self.keys), self.unit, cost=float(self.costs.sum(dtype=np.float64)),
                          loads=True) as step:
                for positions, *values in blocks:
                    at = np.asarray(positions, np.int64)
                    self._bytes += self.take(at, *values)
                    self._at.append(at)
                    present[at] = True
                    step(len(at), note(), float(self.costs[at].sum(dtype=np.float64)))
                    if self._bytes >= self.flush_bytes or time.monotonic() - self._since >= self.flush_seconds:
                        self._flush()
        finally:
            self._flush()
        if not present.all():
            raise MemlabError(f"{self.model} gave nothing for {np.count_nonzero(~present)} of {len(present)} "
                              f"{self.unit}, first for {self.show(int(np.argmin(present)))}")

    def take(self, at: Ints, *values: Any) -> int:
        """Check and hold the values of a block's inputs; return their bytes."""
        raise NotImplementedError

    def arrays(self, keys: Keys) -> Arrays:
        """Return what is held as the arrays of a segment with these keys, and let it go."""
        raise NotImplementedError

    def _flush(self) -> None:
        if self._at:
            at, self._at, self._bytes = np.concatenate(self._at), [], 0
            self.index.add(self.arrays(self.keys[at]))
            self.stored += len(at)
        self._since = time.monotonic()


class ArrayWriter(Writer):
    """Writes vectors of ``dim`` numbers, (b, dim) at a time, or scores (b,) if it is None."""

    def __init__(self, index: SegmentIndex, keys: Keys, model: str, unit: str, dim: int | None, costs: Floats,
                 show: Callable[[int], str], flush_bytes: float, flush_seconds: float) -> None:
        super().__init__(index, keys, model, unit, costs, show, flush_bytes, flush_seconds)
        self.shape = () if dim is None else (dim,)
        self._values: list[Floats] = []

    def take(self, at: Ints, *values: Any) -> int:
        """Check and hold the values of a block's inputs; return their bytes."""
        block = np.asarray(values[0], np.float32)
        expected = (len(at), *self.shape)
        if block.shape != expected:
            raise MemlabError(f"{self.model} gave values of shape {block.shape}, expected {expected}")
        block = block.reshape(len(at), -1)
        finite = np.isfinite(block).all(axis=1)
        if not finite.all():
            first = int(np.argmin(finite))
            what = "NaN" if np.isnan(block[first]).any() else "an infinite value"
            raise MemlabError(
                f"{self.model} gave {what} for {self.show(int(at[first]))}",
                fix="use a wider dtype (float32) or another model; of this batch nothing was stored, of others all")
        self._values.append(block)
        return block.nbytes

    def arrays(self, keys: Keys) -> Arrays:
        """Return what is held as the arrays of a segment with these keys, and let it go."""
        values, self._values = np.concatenate(self._values), []
        return keys, values


class TokenWriter(Writer):
    """Writes token vectors in a number format: for b texts b arrays of token ids (t,) and b matrices (t, dim)."""

    def __init__(self, index: SegmentIndex, keys: Keys, model: str, costs: Floats, show: Callable[[int], str],
                 precision: Precision, flush_bytes: float, flush_seconds: float) -> None:
        super().__init__(index, keys, model, "texts", costs, show, flush_bytes, flush_seconds)
        self.precision = precision
        self._ids: list[Ints] = []
        self._matrices: list[Floats] = []

    def take(self, at: Ints, *values: Any) -> int:
        """Check and hold the tokens of a block's texts; return the bytes of their vectors in fp32."""
        ids, matrices = values
        for i, row, matrix in zip(at.tolist(), ids, matrices, strict=True):
            if matrix.ndim != 2 or len(matrix) != len(row) or not len(row):
                raise MemlabError(f"{self.model} gave token vectors of shape {matrix.shape} for {len(row)} tokens of "
                                  f"{self.show(i)}")
            if not np.isfinite(matrix).all():
                raise MemlabError(f"{self.model} gave a token vector that is not finite for {self.show(i)}",
                                  fix="use a wider dtype (float32) or another model; other texts are stored")
        self._ids += ids
        self._matrices += matrices
        return sum(matrix.nbytes for matrix in matrices)

    def arrays(self, keys: Keys) -> Arrays:
        """Return what is held as the arrays of a segment with these keys, and let it go."""
        block = make_block(keys, self._ids, self._matrices, self.precision)
        self._ids, self._matrices = [], []
        return block.arrays
