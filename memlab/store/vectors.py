"""Vectors of the texts that a search needs, each text once: in memory, or in a memory-mapped file if there are many."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.models.protocols import Embedder, Floats, Ints, Role
from memlab.runtime.files import atomic_path
from memlab.tables import distinct_texts

if TYPE_CHECKING:
    from memlab.store.store import Store

IN_MEMORY = 2 << 30
"""Bytes of vectors above which they are streamed from the store into a mapped file."""

_HEADER = 128
"""Bytes before the vectors in a mapped file, at most."""

BATCH = 1 << 16


@dataclass(frozen=True)
class Rows:
    """Some rows of an array of vectors (which may be memory-mapped), gathered when they are indexed.

    >>> Rows(np.eye(3), np.array([2, 0]))[:1]
    array([[0., 0., 1.]])
    """

    base: Floats
    rows: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, at: Any) -> Floats:
        return self.base[self.rows[at]]


def encode(store: Store, embedder: Embedder, texts: pl.DataFrame, ids: pl.Series, role: Role) -> Rows:
    """Return the vectors of the texts with these ids (n,), in their order; each distinct text is encoded once."""
    distinct, at = distinct_texts(texts, ids)
    if distinct.height * store.dim(embedder, role) * 4 > IN_MEMORY:
        return Rows(_mapped(store, embedder, distinct, role), at)
    return Rows(store.vectors(embedder, distinct, role), at)


def _mapped(store: Store, embedder: Embedder, texts: pl.DataFrame, role: Role) -> Floats:
    """Stream vectors into a file named by model and texts, and map it; an existing file is used as it is."""
    name = "".join([json.dumps(embedder.identity(), sort_keys=True, default=str), role, *texts["text_id"]])
    path = index_folder(store) / f"{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}.npy"
    shape = (texts.height, store.dim(embedder, role))
    found = _load(path, shape)
    if found is None:
        if path.is_dir():
            raise MemlabError("a folder is in the place of a file of vectors", where=str(path), fix="remove it")
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(path) as temporary:
            out = np.lib.format.open_memmap(temporary, "w+", np.float32, shape)
            for rows, block in store.iter_vectors(embedder, texts, role, BATCH):
                out[rows] = block
            out.flush()
        found = np.load(path, mmap_mode="r")
    return found


def _load(path: Path, shape: tuple[int, int]) -> Floats | None:
    """Map a file of vectors; None if there is none, or none of this shape."""
    if not path.is_file() or path.stat().st_size > _HEADER + 4 * shape[0] * shape[1]:
        return None
    try:
        found: Floats = np.load(path, mmap_mode="r")
    except Exception:  # a damaged header may raise anything inside numpy's parser
        return None
    return found if found.shape == shape and found.dtype == np.float32 else None


def digest(vectors: Any, config: dict[str, Any]) -> str:
    """Return the digest that names an index: of the vectors' bytes and its configuration."""
    total = hashlib.blake2b(repr(sorted(config.items())).encode(), digest_size=16)
    for start in range(0, len(vectors), BATCH):
        total.update(np.ascontiguousarray(vectors[start:start + BATCH], np.float32).data)
    return total.hexdigest()


def index_folder(store: Store) -> Path:
    """Return the folder of indexes and mapped vectors; deleting it costs time only."""
    return store.root / "indexes"
