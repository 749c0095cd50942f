"""Indexes over texts that a live memory caches between questions, and their on-disk form."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints


class TextIndex(Protocol):
    """An index over texts. Its ``of(tables, ...)`` adds new texts and returns the part that a search needs."""

    def forget(self, left: pl.Series) -> None:
        """Forget all texts but those with these ids (n,)."""


class SavedCodes(Protocol):
    """Centroids of token vectors on disk, and the nearest centroid of each token of some texts.

    Forgetting any text deletes all of it, since a centroid may lie on a single vector.
    """

    def centroids(self) -> tuple[Floats, int] | None:
        """Return the centroids (k, dim) and the number of tokens that they were trained for; None if none are saved."""

    def codes(self) -> tuple[NDArray[np.uint64], Ints, NDArray[np.unsignedinteger]]:
        """Return the keys of the texts (n, 2), where each starts (n + 1,), and the centroids of their tokens (t,)."""

    def replace(self, centroids: Floats, trained_for: int) -> None:
        """Save new centroids (k, dim), and drop all codes."""

    def add(self, keys: NDArray[np.uint64], starts: Ints, codes: NDArray[np.integer]) -> None:
        """Save the codes of more texts: keys (n, 2), starts (n + 1,), codes (t,)."""
