"""A toy embedder, and a worker (``python worker.py ROOT COUNT SEED``) that a test starts eightfold."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import texts_frame
from memlab.store import Store

DIM = 8


def digest_vector(text: str, dim: int = DIM) -> Floats:
    raw = hashlib.blake2b(text.encode(), digest_size=4 * dim).digest()
    vector = np.frombuffer(raw, "<u4").astype(np.float32) / 2**32 - 0.5
    return vector / np.linalg.norm(vector)


class DigestEmbedder:
    """A deterministic embedder that counts what it is asked; longest texts first, as real ones work."""

    def __init__(self, name: str = "digest", batch: int = 4, bad: str | None = None, pause: float = 0.0) -> None:
        self.name, self.batch, self.bad, self.pause = name, batch, bad, pause
        self.asked: list[str] = []

    def identity(self) -> dict[str, Any]:
        return {"model": self.name, "dim": DIM}

    def dim(self) -> int:
        return DIM

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        order = np.argsort([-len(t) for t in texts], kind="stable")
        for start in range(0, len(order), self.batch):
            at = order[start : start + self.batch]
            self.asked += [texts[i] for i in at]
            vectors = np.stack([digest_vector(role + texts[i]) for i in at])
            vectors[[texts[i] == self.bad for i in at]] = np.nan
            time.sleep(self.pause)
            yield at, vectors

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:
        return np.zeros(len(texts), bool)


def expected(texts: pl.DataFrame, role: str = "document") -> Floats:
    return np.stack([digest_vector(role + t) for t in texts["text"]])


def some_texts(count: int) -> pl.DataFrame:
    return texts_frame(f"text {i} " + "long " * (i % 7) for i in range(count))


def work() -> int:
    """Fill a store in an order of one's own, flushing every block."""
    root, count, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    texts = some_texts(count).sample(fraction=1, shuffle=True, seed=seed)
    print("ready", flush=True)
    vectors = Store(root, flush_seconds=0).vectors(DigestEmbedder(batch=20, pause=0.005), texts, "document")
    np.testing.assert_array_equal(vectors, expected(texts))
    print("done", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(work())
