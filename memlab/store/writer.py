"""Buffered writer of model results: checked as they come, stored in large blocks, finite numbers only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.models.protocols import Floats, Ints
from memlab.runtime.progress import progress
from memlab.store.index import SegmentIndex

Blocks = Iterator[tuple[Ints, Floats]]
"""Blocks of (positions (b,), values (b,) or (b, dim)), in any order."""


def model_name(model: Any) -> str:
    """Return a model's display name: its attribute ``name``, else that in its identity.

    >>> from types import SimpleNamespace
    >>> model_name(SimpleNamespace(name="bge-small"))
    'bge-small'
    """
    name = getattr(model, "name", None)
    identity = {} if name else model.identity()
    return str(name or identity.get("model") or identity.get("is") or type(model).__name__)


class BufferedWriter:
    """Writes one model's results for n inputs to the store.

    Args:
        index: Where they are stored.
        keys: Key columns of the inputs, n rows.
        model: The model's name, for progress and errors.
        unit: The name of the inputs ("texts", "pairs").
        shape: Shape of one value: () for a score, (dim,) for a vector.
        costs: Relative cost of each input (n,), for the time left.
        show: Returns input i as text, for an error.
        flush_bytes: Blocks are written when they hold this many bytes,
        flush_seconds: or when the last write was this long ago.
    """

    def __init__(self, index: SegmentIndex, keys: pl.DataFrame, model: str, unit: str, shape: tuple[int, ...],
                 costs: Floats, show: Callable[[int], str], flush_bytes: float, flush_seconds: float) -> None:
        self.index, self.keys, self.model, self.unit, self.shape, self.show = index, keys, model, unit, shape, show
        self.costs = costs
        self.flush_bytes, self.flush_seconds = flush_bytes, flush_seconds
        self.stored = 0
        self._blocks: list[tuple[Ints, Floats]] = []
        self._bytes, self._since = 0, time.monotonic()

    def write(self, blocks: Blocks, note: Callable[[], str] = lambda: "") -> None:
        """Store all blocks; those that came before an error or an interrupt are stored too.

        Raises MemlabError if the model yields a value that is not finite, one of the wrong shape, or no value
        for an input; nothing of the faulty block is stored.
        """
        present = np.zeros(self.keys.height, bool)
        try:
            with progress(self.model, self.keys.height, self.unit, cost=float(self.costs.sum(dtype=np.float64)),
                          loads=True) as step:
                for positions, block in blocks:
                    at, values = np.asarray(positions, np.int64), np.asarray(block, np.float32)
                    self._check(at, values)
                    present[at] = True
                    self._blocks.append((at, values))
                    self._bytes += values.nbytes
                    step(len(at), note(), float(self.costs[at].sum(dtype=np.float64)))
                    if self._bytes >= self.flush_bytes or time.monotonic() - self._since >= self.flush_seconds:
                        self._flush()
        finally:
            self._flush()
        if not present.all():
            raise MemlabError(f"{self.model} gave nothing for {np.count_nonzero(~present)} of {len(present)} "
                              f"{self.unit}, first for {self.show(int(np.argmin(present)))}")

    def _check(self, at: Ints, values: Floats) -> None:
        expected = (len(at), *self.shape)
        if values.shape != expected:
            raise MemlabError(f"{self.model} gave values of shape {values.shape}, expected {expected}")
        finite = np.isfinite(values).reshape(len(at), -1).all(axis=1)
        if not finite.all():
            first = int(np.argmin(finite))
            what = "NaN" if np.isnan(values[first]).any() else "an infinite value"
            raise MemlabError(
                f"{self.model} gave {what} for {self.show(int(at[first]))}",
                fix="use a wider dtype (float32) or another model; of this batch nothing was stored, of others all")

    def _flush(self) -> None:
        if self._blocks:
            at = np.concatenate([at for at, _ in self._blocks])
            values = np.concatenate([values for _, values in self._blocks])
            self._blocks, self._bytes = [], 0
            self.index.add(self.keys[at], values)
            self.stored += len(at)
        self._since = time.monotonic()
