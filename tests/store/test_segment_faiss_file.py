"""Saved FAISS indexes end with a digest of their bytes: what differs is not read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.store.segment import DIGEST, read_index, write_index

faiss = pytest.importorskip("faiss")
N, DIM = 300, 16


def small_index(kind: str) -> Any:
    """Return an index of random vectors."""
    vectors = np.random.default_rng(0).standard_normal((N, DIM)).astype(np.float32)
    index = faiss.index_factory(DIM, kind, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    return index


@pytest.mark.parametrize("kind", ["IVF4,Flat", "IVF4,PQ4x4", "HNSW8,Flat", "SQ8"])
def test_an_index_is_read_as_written_and_every_changed_bit_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.faiss"
    index = small_index(kind)
    write_index(faiss, index, path)
    queries = np.random.default_rng(1).standard_normal((5, DIM)).astype(np.float32)
    read = read_index(faiss, path)
    assert read is not None
    for got, expected in zip(read.search(queries, 10), index.search(queries, 10)):
        assert (got == expected).all()
    whole = path.read_bytes()
    for bit in np.random.default_rng(2).choice(len(whole) * 8, 60, replace=False).tolist():
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert read_index(faiss, path) is None


@pytest.mark.parametrize("size", [0, 5, DIGEST])
def test_files_without_a_digest_are_refused(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a.faiss"
    assert read_index(faiss, path) is None
    path.write_bytes(bytes(size))
    assert read_index(faiss, path) is None
    faiss.write_index(small_index("SQ8"), str(path))  # as written without a digest
    assert read_index(faiss, path) is None
