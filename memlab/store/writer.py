"""What a model makes, checked and stored as it comes: large flushes, and nothing that is not a number."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.models.protocols import Floats, Ints
from memlab.runtime.progress import progress
from memlab.store.index import Folder

Made = Iterator[tuple[Ints, Floats]]
"""Blocks of (positions (b,), values (b,) or (b, dim)), in any order."""


def model_name(model: Any) -> str:
    """Return what people call a model: its attribute ``name``, else what its identity says.

    >>> from types import SimpleNamespace
    >>> model_name(SimpleNamespace(name="bge-small"))
    'bge-small'
    """
    name = getattr(model, "name", None)
    identity = {} if name else model.identity()
    return str(name or identity.get("model") or identity.get("is") or type(model).__name__)


class Intake:
    """Takes one model's results for n inputs into a folder.

    Args:
        folder: Where they are stored.
        keys: Key columns of the inputs, n rows.
        who: The model's name, for progress and errors.
        unit: What the inputs are called ("texts", "pairs").
        shape: Shape of one value: () for a score, (dim,) for a vector.
        show: Shows input i in an error.
        flush_bytes: Blocks are written when they hold so much,
        flush_seconds: or when so much time has passed since the last write.
    """

    def __init__(self, folder: Folder, keys: pl.DataFrame, who: str, unit: str, shape: tuple[int, ...],
                 show: Callable[[int], str], flush_bytes: float, flush_seconds: float) -> None:
        self.folder, self.keys, self.who, self.unit, self.shape, self.show = folder, keys, who, unit, shape, show
        self.flush_bytes, self.flush_seconds = flush_bytes, flush_seconds
        self.stored = 0
        self._blocks: list[tuple[Ints, Floats]] = []
        self._bytes, self._since = 0, time.monotonic()

    def take(self, made: Made, note: Callable[[], str] = lambda: "") -> None:
        """Store everything that ``made`` yields; what came before an error or an interrupt is stored too.

        Raises MemlabError if the model yields a value that is not finite, one of the wrong shape, or no value
        for an input; of the offending block nothing is stored.
        """
        seen = np.zeros(self.keys.height, bool)
        try:
            with progress(self.who, self.keys.height, self.unit) as step:
                for positions, block in made:
                    at, values = np.asarray(positions, np.int64), np.asarray(block, np.float32)
                    self._check(at, values)
                    seen[at] = True
                    self._blocks.append((at, values))
                    self._bytes += values.nbytes
                    step(len(at), note())
                    if self._bytes >= self.flush_bytes or time.monotonic() - self._since >= self.flush_seconds:
                        self._flush()
        finally:
            self._flush()
        if not seen.all():
            raise MemlabError(f"{self.who} gave nothing for {np.count_nonzero(~seen)} of {len(seen)} {self.unit}, "
                              f"first for {self.show(int(np.argmin(seen)))}")

    def _check(self, at: Ints, values: Floats) -> None:
        expected = (len(at), *self.shape)
        if values.shape != expected:
            raise MemlabError(f"{self.who} gave values of shape {values.shape}, expected {expected}")
        finite = np.isfinite(values).reshape(len(at), -1).all(axis=1)
        if not finite.all():
            first = int(np.argmin(finite))
            what = "NaN" if np.isnan(values[first]).any() else "an infinite value"
            raise MemlabError(
                f"{self.who} gave {what} for {self.show(int(at[first]))}",
                fix="use a wider dtype (float32) or another model; of this batch nothing was stored, of others all")

    def _flush(self) -> None:
        if self._blocks:
            at = np.concatenate([at for at, _ in self._blocks])
            values = np.concatenate([values for _, values in self._blocks])
            self._blocks, self._bytes = [], 0
            self.folder.add(self.keys[at], values)
            self.stored += len(at)
        self._since = time.monotonic()
