"""Vector search: its protocol, and exact search with numpy; the approximate indices are in ``search.faiss_index``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from memlab.models.protocols import Floats, Ints
from memlab.search.hits import Scores, topk_candidates
from memlab.stage import stage

GPU_PAYS = 1e11
"""Multiply-adds above which exact search is worth a copy to a GPU (some seconds of a CPU)."""

Neighbours = list[tuple[Ints, Scores]]
"""For each query the positions (m,) of vectors and their inner products (m,), in no set order."""


class Vectors(Protocol):
    """Vectors (n, d) that may not fit in memory: an array, a mapped file, or rows of either."""

    def __len__(self) -> int: ...

    def __getitem__(self, at: Any, /) -> Floats:
        """Return the rows of a slice, or of an array of positions, as an array in memory."""
        ...


class Searcher(Protocol):
    """An opened index."""

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        """Return at least the ``depth`` best of the first ``visible[i]`` vectors for each query i, and none beyond.

        queries: (q, d); visible: (q,). Ties may make it more than ``depth``; the caller ranks them.
        """
        ...


@runtime_checkable
class Index(Protocol):
    """A strategy for searching the vectors of largest inner product."""

    def identity(self) -> dict[str, Any]:
        """Return all that can change the result."""
        ...

    def open(self, vectors: Vectors, folder: Path | None) -> Searcher:
        """Return a searcher of vectors (n, d) of unit length; the index is kept in ``folder``, unless it is None."""
        ...


@cache
def note(text: str) -> None:
    """Log a remark about a search, once per process."""
    logging.getLogger("memlab").warning(text)


@dataclass(frozen=True)
class Exact:
    """Search by computing every product, in blocks of vectors and of queries."""

    vectors: Vectors
    block: int = 1 << 16
    gpu: bool = False

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        """Return the best vectors; memory is bounded by the block, however many vectors there are.

        >>> v = np.eye(3, dtype=np.float32)
        >>> [at.tolist() for at, _ in Exact(v).search(v[:2], np.array([3, 1]), 1)]
        [[0], [0]]
        """
        product = _product_on_gpu if self.gpu else np.matmul
        neighbours: Neighbours = []
        for start in range(0, len(queries), 256):
            batch, limits = queries[start:start + 256], visible[start:start + 256]
            kept = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in batch]
            floors = np.full(len(batch), -np.inf)
            for at in range(0, int(limits.max(initial=0)), self.block):
                part = self.vectors[at:min(at + self.block, int(limits.max()))]
                products = product(batch, part.T)  # (q, block)
                for i, limit in enumerate(np.clip(limits - at, 0, len(part))):
                    better = topk_candidates(products[i, :limit], depth, floors[i])
                    kept[i] = _merged(kept[i], (at + better, products[i][better]), depth)
                    if len(kept[i][0]) >= depth:
                        floors[i] = kept[i][1].min()
            neighbours += kept
        return neighbours


@stage
class Flat:
    """Exact search by matrix product; a GPU is used where there is one and the product is large."""

    device: Literal["auto", "cpu"] = "auto"
    block: Annotated[int, Field(ge=1)] = 1 << 16

    def identity(self) -> dict[str, Any]:
        """Return the strategy; device and block size change time and memory only."""
        return {"is": "flat"}

    def open(self, vectors: Vectors, folder: Path | None) -> Searcher:  # noqa: ARG002  (nothing is built or kept)
        """Return a searcher over the vectors as they are."""
        return _FlatSearcher(vectors, self.block, self.device)


@dataclass(frozen=True)
class _FlatSearcher:
    vectors: Vectors
    block: int
    device: str

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        large = float(visible.sum()) * queries.shape[-1] > GPU_PAYS
        return Exact(self.vectors, self.block, self.device == "auto" and large and _has_gpu()).search(
            queries, visible, depth)


def _merged(one: tuple[Ints, Scores], two: tuple[Ints, Scores], depth: int) -> tuple[Ints, Scores]:
    if not len(two[0]):
        return one
    at, scores = np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
    better = topk_candidates(scores, depth)
    return at[better], scores[better]


def _has_gpu() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _product_on_gpu(left: Floats, right: Floats) -> Floats:
    import torch

    product: Callable[[Any, Any], Any] = torch.matmul
    return product(torch.from_numpy(left).cuda(), torch.from_numpy(np.ascontiguousarray(right)).cuda()).cpu().numpy()
