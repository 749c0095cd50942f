"""What the FAISS strategies share: when an index pays, how it is built, kept, mapped and searched.

Where an index cannot pay, in a pool (or in the part of it that a query may see) below ``exact_below`` vectors,
search is exact, and a note says so. The products of whatever an index finds are recomputed from the vectors, so
that scores mean the same in every strategy. A query that an index leaves short is searched exactly.

An index is deterministic: k-means is seeded, and a graph, whose links depend on the order of insertion, is built by
one thread unless ``build_threads`` says otherwise. It is kept under the digest of its vectors and configuration,
and mapped into memory, not read.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.protocols import Floats, Ints
from memlab.search.index import Exact, Found, Searcher, Vectors, note
from memlab.search.vectors import BATCH, digest
from memlab.stage import stage

Positive = Annotated[int, Field(ge=1)]
GPU_DEPTH = 2048
"""FAISS on a GPU returns no more than this many a query."""


@stage
class Approximate:
    """What the approximate strategies share."""

    on_gpu: ClassVar[bool] = True

    exact_below: Annotated[int, Field(ge=0)] = 20_000
    refine: Positive = 1
    device: Literal["auto", "cpu"] = "auto"
    threads: Positive | None = None
    build_threads: Positive | None = None
    seed: Annotated[int, Field(ge=0)] = 0

    @abstractmethod
    def made(self, faiss: Any, n: int, dim: int) -> Any:
        """Return the empty FAISS index for n vectors of this many dimensions."""

    @abstractmethod
    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:
        """Return how to search for this many among what the selector (or None) lets through."""

    def built_from(self) -> dict[str, Any]:
        """Name what the index itself depends on, as opposed to the search in it."""
        return {"is": type(self).__name__, "seed": self.seed, "build_threads": self.build_threads or 1}

    def identity(self) -> dict[str, Any]:
        """All that can change what is found; devices and threads of the search do not."""
        return {**self.built_from(), "exact_below": self.exact_below, "refine": self.refine}

    def open(self, vectors: Vectors, folder: Path | None) -> Searcher:
        """Build the index, or map the one kept in the folder; exact search for a small pool.

        Raises MemlabError if FAISS is not installed or a parameter does not fit the vectors.
        """
        if len(vectors) < self.exact_below:
            note(f"{type(self).__name__}: a pool under {self.exact_below} vectors is searched exactly, "
                 "an index cannot pay there")
            return Exact(vectors)
        faiss = _faiss()
        path = folder / f"{digest(vectors, self._key(faiss))}.faiss" if folder else None
        index = _mapped(faiss, path) if path else None
        if index is None:
            index = self._build(faiss, vectors)
            if path:
                _keep(faiss, index, path)
                index = _mapped(faiss, path)
        faiss.omp_set_num_threads(self.threads or available_cores())
        return _Opened(self, faiss, index, vectors)

    def _key(self, faiss: Any) -> dict[str, Any]:
        return {**self.built_from(), "faiss": faiss.__version__}

    def _build(self, faiss: Any, vectors: Vectors) -> Any:
        n, dim = len(vectors), vectors[:1].shape[1]
        index = self.made(faiss, n, dim)
        faiss.omp_set_num_threads(self.build_threads or 1)
        if not index.is_trained:
            most = min(n, self.training_size(n))
            sample = np.sort(np.random.default_rng(self.seed).choice(n, most, replace=False))
            index.train(np.ascontiguousarray(vectors[sample], np.float32))
        for start in range(0, n, BATCH):
            index.add(np.ascontiguousarray(vectors[start:start + BATCH], np.float32))
        return index

    def training_size(self, n: int) -> int:
        """Return how many of n vectors the index is trained on."""
        return min(n, 100_000)


@dataclass(frozen=True)
class _Opened:
    """A FAISS index beside the vectors that it was made from."""

    config: Approximate
    faiss: Any
    index: Any
    vectors: Vectors

    def search(self, queries: Floats, seen: Ints, depth: int) -> Found:
        """Find with the index where it pays; the as-of rule is a selector inside the search."""
        found: Found = [(np.empty(0, np.int64), np.empty(0, np.float32))] * len(queries)
        least = max(1, self.config.exact_below)
        plain = np.flatnonzero(seen < least).tolist()
        for limit in np.unique(seen[seen >= least]).tolist():
            rows = np.flatnonzero(seen == limit)
            for row, at in zip(rows.tolist(), self._candidates(queries[rows], limit, depth)):
                if len(at) < min(depth, limit):
                    plain.append(row)  # the index ran out of lists or links
                else:
                    found[row] = at, self.vectors[at] @ queries[row]
        for row, hit in zip(plain, Exact(self.vectors).search(queries[plain], seen[plain], depth)):
            found[row] = hit
        return found

    def _candidates(self, queries: Floats, limit: int, depth: int) -> list[Ints]:
        wanted = min(depth * self.config.refine, limit)
        everything = limit == len(self.vectors)
        selector = None if everything else self.faiss.IDSelectorRange(0, limit)
        index = self.index
        if everything and wanted <= GPU_DEPTH and self.config.on_gpu and self.config.device == "auto":
            index = self._on_gpus()
        parameters = self.config.parameters(self.faiss, wanted, selector)
        _, positions = index.search(np.ascontiguousarray(queries, np.float32), wanted, params=parameters)
        return [at[at >= 0] for at in positions]

    def _on_gpus(self) -> Any:
        """Return the index on all GPUs, or as it is where there is none (filters stay on the CPU)."""
        if not getattr(self.faiss, "get_num_gpus", lambda: 0)():
            return self.index
        return self.faiss.index_cpu_to_all_gpus(self.index)


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MemlabError("this index needs FAISS, which is not installed", where="search.dense.index",
                          fix="pip install -e '.[cpu]'") from None
    return faiss


def _keep(faiss: Any, index: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}.tmp")
    faiss.write_index(index, str(aside))
    os.replace(aside, path)


def _mapped(faiss: Any, path: Path) -> Any | None:
    """Map the index of this path; None where there is none, or none that can be read."""
    if not path.exists():
        return None
    try:
        return faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP))
    except RuntimeError:
        note(f"{path.name} is damaged and is built again")
        return None
