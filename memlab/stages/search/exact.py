"""Vector search: its protocol, and exact search with numpy or on a GPU (approximate: ``faiss_index``)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import numpy as np
from pydantic import Field

from memlab.models.local.backend import free_bytes, gpu_count, to_device
from memlab.models.local.batching import attempt
from memlab.models.protocols import Floats, Ints
from memlab.pipeline.stage import stage
from memlab.stages.search.hits import Scores, topk_candidates
from memlab.support.terminal import log_once

GPU_PAYS = 1e9
"""Multiply-adds from which a search in vectors that are on the GPU is faster there. Measured, 16 cores and an H200: 1e9
take 18 and 15 ms for 256 questions in 5,000 vectors of 1,024 numbers, 44 and 1.5 ms for one in a million vectors."""

SENT = 20
"""Multiply-adds more for each number that has to be sent first, measured there: 16 questions in 300,000 or a million
vectors take as long on both (48 and 45 ms, 130 and 136 ms), 256 in 100,000 vectors 228 and 62 ms."""

GPU = "cuda"
"""The device of exact search where it pays: the first GPU."""

CELLS = 1 << 28
"""Products in a GPU's memory at a time (1 GB in fp32)."""

SLACK, NEAR = 64, 1e-5
"""Vectors beyond the depth that a GPU brings back, and by how much its fp32 products are at least taken to be off."""

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
        """Return a searcher of vectors (n, d) of unit length; the index is saved in ``folder``, unless it is None."""
        ...


def gpu_pays(products: float, sent: int) -> bool:
    """Return whether a search of so many multiply-adds is faster on a GPU, to which ``sent`` numbers must go first.

    >>> gpu_pays(600 * 200 * 1024, 600 * 1024)  # a conversation of LoCoMo: 600 vectors, 200 questions
    False
    >>> gpu_pays(250_000 * 500 * 1024, 250_000 * 1024)  # LongMemEval-S in one pool
    True
    """
    return products >= GPU_PAYS + SENT * sent


@dataclass(frozen=True)
class Exact:
    """Search by computing every product, in blocks of vectors and of queries."""

    vectors: Vectors
    block: int = 1 << 16

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        """Return the best vectors; memory is bounded by the block, however many vectors there are.

        >>> v = np.eye(3, dtype=np.float32)
        >>> [at.tolist() for at, _ in Exact(v).search(v[:2], np.array([3, 1]), 1)]
        [[0], [0]]
        """
        neighbours: Neighbours = []
        for start in range(0, len(queries), 256):
            batch, limits = queries[start:start + 256], visible[start:start + 256]
            kept = [(np.empty(0, np.int64), np.empty(0, np.float32)) for _ in batch]
            floors = np.full(len(batch), -np.inf)
            for at in range(0, int(limits.max(initial=0)), self.block):
                products = np.matmul(batch, self.vectors[at:min(at + self.block, int(limits.max()))].T)
                for i, limit in enumerate(np.clip(limits - at, 0, products.shape[1])):
                    better = topk_candidates(products[i, :limit], depth, floors[i])
                    kept[i] = _merge(kept[i], (at + better, products[i][better]), depth)
                    if len(kept[i][0]) >= depth:
                        floors[i] = kept[i][1].min()
            neighbours += kept
        return neighbours


@dataclass(frozen=True)
class ExactOnDevice:
    """Exact search on a torch device: each block of vectors is sent once per search, or once for all if all fit.

    Products and the choice of the best stay on the device in fp32. Only positions come back, and their products are
    computed again on the CPU. A query whose cut the device's rounding could have moved is searched again, deeper; the
    rounding is measured on the products that came back, since a library may have switched TF32 on.
    """

    vectors: Vectors
    block: int
    device: str
    resident: bool | None = None  # whether all vectors stay on the device; None: if half of its free memory holds them

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        """Return the best vectors of each query, and some more."""
        neighbours: Neighbours = [(np.empty(0, np.int64), np.empty(0, np.float32))] * len(queries)
        rows, count = np.flatnonzero(visible), depth + SLACK
        while len(rows):
            deeper = []
            for row, products, positions in zip(rows.tolist(), *self._best(queries[rows], visible[rows], count)):
                at = positions[products > -np.inf]
                scores = self.vectors[at] @ queries[row]
                neighbours[row] = at, scores
                if len(at) < visible[row]:
                    cut = float(np.partition(scores, len(at) - depth)[len(at) - depth])
                    off = 2 * float(np.abs(products[products > -np.inf] - scores).max())  # large where TF32 is on
                    if products.min() > cut - max(NEAR * max(1.0, abs(cut)), off):
                        deeper.append(row)
            rows, count = np.array(deeper, np.int64), 4 * count
        return neighbours

    def _best(self, queries: Floats, visible: Ints, count: int) -> tuple[Floats, Ints]:
        """Return the ``count`` largest products of each query (q, count) and their positions; -inf where none."""
        import torch

        end = int(visible.max())
        block = self.block if self._resident is None else max(self.block, CELLS // len(queries))
        with torch.inference_mode():
            asked, limits = torch.from_numpy(queries).to(self.device), torch.from_numpy(visible).to(self.device)
            best = torch.full((len(queries), count), -torch.inf, device=self.device)
            where = torch.full((len(queries), count), -1, dtype=torch.int64, device=self.device)
            for start in range(0, end, block):
                part = self._part(start, min(start + block, end))
                columns = torch.arange(start, start + len(part), device=self.device)
                step = max(1, CELLS // len(part))
                for first in range(0, len(queries), step):
                    some = slice(first, first + step)
                    products = asked[some] @ part.T
                    products.masked_fill_(columns >= limits[some, None], -torch.inf)
                    new = products.topk(min(count, len(part)), dim=1, sorted=False)
                    merged = torch.cat([best[some], new.values], dim=1).topk(count, dim=1, sorted=False)
                    both = torch.cat([where[some], new.indices + start], dim=1)
                    best[some], where[some] = merged.values, both.gather(1, merged.indices)
            return best.cpu().numpy(), where.cpu().numpy()

    def holds_all(self) -> bool:
        """Return whether all vectors are on the device already."""
        return "_resident" in vars(self) and self._resident is not None

    def _part(self, start: int, end: int) -> Any:
        """Return vectors start to end on the device."""
        return self._send(start, end) if self._resident is None else self._resident[start:end]

    @cached_property
    def _resident(self) -> Any:
        """All vectors on the device; None if they would take more than half of its free memory."""
        import torch

        n, dim = len(self.vectors), self.vectors[:0].shape[1]
        if not (8 * n * dim <= free_bytes(self.device) if self.resident is None else self.resident):
            return None
        held = torch.empty((n, dim), device=self.device)
        for start in range(0, n, self.block):
            held[start:start + self.block] = self._send(start, min(start + self.block, n))
        return held

    def _send(self, start: int, end: int) -> Any:
        return to_device(np.ascontiguousarray(self.vectors[start:end], np.float32), self.device)


@stage
class Flat:
    """Exact search by matrix product; a GPU is used where there is one and the product is large."""

    device: Literal["auto", "cpu"] = "auto"
    block: Annotated[int, Field(ge=1)] = 1 << 16

    def identity(self) -> dict[str, Any]:
        """Return the strategy; device and block size change time and memory only."""
        return {"is": "flat"}

    def open(self, vectors: Vectors, folder: Path | None) -> Searcher:  # noqa: ARG002  (nothing is built or saved)
        """Return a searcher over the vectors as they are."""
        return _FlatSearcher(vectors, self.block, self.device)


@dataclass(frozen=True)
class _FlatSearcher:
    vectors: Vectors
    block: int
    device: str

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        if self._pays(float(visible.sum()) * queries.shape[-1], queries.shape[-1]):
            neighbours = attempt(partial(self._on_gpu.search, queries, visible, depth))
            if neighbours is not None:
                return neighbours
            log_once("exact search runs on the CPU: the GPU ran out of memory")
        return Exact(self.vectors, self.block).search(queries, visible, depth)

    def _pays(self, products: float, dim: int) -> bool:
        """Return whether to search on the GPU; log the rule the first time that it decides either way."""
        if self.device == "cpu" or not products or not _has_gpu():
            return False
        sent = 0 if "_on_gpu" in vars(self) and self._on_gpu.holds_all() else len(self.vectors) * dim
        pays = gpu_pays(products, sent)
        log_once(f"exact search {'runs on the GPU' if pays else 'stays on the CPU'} where a search has "
                 f"{'at least' if pays else 'fewer than'} {GPU_PAYS:.0e} multiply-adds and {SENT} more per number sent")
        return pays

    @cached_property
    def _on_gpu(self) -> ExactOnDevice:
        return ExactOnDevice(self.vectors, self.block, GPU)


def _merge(one: tuple[Ints, Scores], two: tuple[Ints, Scores], depth: int) -> tuple[Ints, Scores]:
    if not len(two[0]):
        return one
    at, scores = np.concatenate([one[0], two[0]]), np.concatenate([one[1], two[1]])
    better = topk_candidates(scores, depth)
    return at[better], scores[better]


def _has_gpu() -> bool:
    return bool(gpu_count())
