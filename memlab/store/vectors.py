"""Vectors of the texts that a search needs, each text once: in memory, or in the store's segments if there are many."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.models.protocols import Embedder, Floats, Ints, Role
from memlab.store.index import StoredRows
from memlab.tables import distinct_texts

if TYPE_CHECKING:
    from memlab.store.store import Store

IN_MEMORY = 2 << 30
"""Bytes of vectors above which they stay in the store's mapped segments."""

BATCH = 1 << 16


@dataclass(frozen=True)
class Rows:
    """Some rows of an array of vectors, or of those of a store, gathered when they are indexed.

    >>> Rows(np.eye(3), np.array([2, 0]))[:1]
    array([[0., 0., 1.]])
    """

    base: Floats | StoredRows
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Floats:
        return self.base[self.rows[at]]


def encode(store: Store, embedder: Embedder, texts: pl.DataFrame, ids: pl.Series, role: Role) -> Rows:
    """Return the vectors of the texts with these ids (n,), in their order; each distinct text is encoded once."""
    distinct, at = distinct_texts(texts, ids)
    if distinct.height * store.dim(embedder, role) * 4 > IN_MEMORY:
        return Rows(store.stored_vectors(embedder, distinct, role), at)
    return Rows(store.vectors(embedder, distinct, role), at)


def digest(vectors: Any, config: dict[str, Any]) -> str:
    """Return the digest that names an index: of the vectors' bytes and its configuration."""
    total = hashlib.blake2b(repr(sorted(config.items())).encode(), digest_size=16)
    for start in range(0, len(vectors), BATCH):
        total.update(np.ascontiguousarray(vectors[start:start + BATCH], np.float32).data)
    return total.hexdigest()


def index_folder(store: Store) -> Path:
    """Return the folder of indexes; deleting it costs time only."""
    return store.root / "indexes"
