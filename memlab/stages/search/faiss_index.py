"""Approximate vector search with FAISS: IVF, IVF-PQ, HNSW and 8-bit codes."""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from memlab.models.protocols import Floats, Ints
from memlab.pipeline.stage import stage
from memlab.stages.search import faiss_gpu
from memlab.stages.search.exact import Flat, Neighbours, Searcher, Vectors
from memlab.store.segment import read_index, write_index
from memlab.support.errors import MemlabError
from memlab.support.machine import usable_cores
from memlab.support.terminal import log_once

Positive = Annotated[int, Field(ge=1)]

BATCH = 1 << 16
"""Vectors that are read at a time."""


def digest(vectors: Any, config: dict[str, Any]) -> str:
    """Return the digest that names an index: of the vectors' bytes and its configuration."""
    total = hashlib.blake2b(repr(sorted(config.items())).encode(), digest_size=16)
    for start in range(0, len(vectors), BATCH):
        total.update(np.ascontiguousarray(vectors[start:start + BATCH], np.float32).data)
    return total.hexdigest()


@stage
class Approximate:
    """Base of the approximate strategies."""

    on_gpus: ClassVar[bool] = False  # whether FAISS has such an index for GPUs
    build_fields: ClassVar[tuple[str, ...]] = ()  # settings that change the index
    search_fields: ClassVar[tuple[str, ...]] = ()  # settings that change the result of a search in it

    exact_below: Annotated[int, Field(ge=0)] = 20_000  # with fewer vectors a matrix product is as fast, and exact
    refine: Positive = 1  # exact products for this many times as many vectors as are wanted
    # auto: all GPUs that FAISS finds build IVF and IVF-PQ, and search them where a query may see every vector
    device: Literal["auto", "cpu"] = "auto"
    threads: Positive | None = None  # null: all cores
    build_threads: Positive | None = None  # null: one, so that a build is reproducible; more are faster
    seed: Annotated[int, Field(ge=0)] = 0

    @abstractmethod
    def new_index(self, faiss: Any, n: int, dim: int) -> Any:
        """Return the empty FAISS index for n vectors of this many dimensions."""

    @abstractmethod
    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:
        """Return FAISS's parameters of a search for this many vectors among those that ``selector`` admits."""

    def build_settings(self) -> dict[str, Any]:
        """Return all that the index itself depends on, as opposed to the search in it."""
        return {"is": type(self).__name__, "seed": self.seed, "build_threads": self.build_threads or 1,
                **{name: getattr(self, name) for name in self.build_fields}}

    def identity(self) -> dict[str, Any]:
        """Return all that can change the result; devices and threads of the search do not."""
        return {**self.build_settings(), "exact_below": self.exact_below, "refine": self.refine,
                **{name: getattr(self, name) for name in self.search_fields}}

    def open(self, vectors: Vectors, folder: Path | None) -> Searcher:
        """Build the index, or map the one saved in ``folder``; a small pool is searched exactly.

        Raises MemlabError if FAISS is not installed or a parameter does not fit the vectors.
        """
        exact = Flat(device=self.device).open(vectors, None)
        if len(vectors) < self.exact_below:  # an index cannot pay there
            return exact
        faiss = faiss_gpu.load_faiss("search.dense.index")
        gpu = self._gpus(faiss)
        key = {**self.build_settings(), "faiss": faiss.__version__, **({"built_on": "gpu"} if gpu else {})}
        path = folder / f"{digest(vectors, key)}.faiss" if folder else None
        index = read_index(faiss, path) if path else None
        if index is None:
            index = self._build(faiss, vectors, gpu)
            if path:
                write_index(faiss, index, path)
                index = read_index(faiss, path)
        faiss.omp_set_num_threads(self.threads or usable_cores())
        on_gpus = faiss_gpu.GpuSearch(faiss, index, getattr(self, "nprobe", 1), type(self).__name__) if gpu else None
        return _FaissSearcher(self, faiss, index, vectors, exact, on_gpus)

    def _gpus(self, faiss: Any) -> bool:
        """Return whether the index is built on GPUs; log why not."""
        if self.device == "cpu" or not self.on_gpus or not faiss_gpu.count_gpus(faiss):
            return False
        if obstacle := faiss_gpu.failure():
            log_once(f"{type(self).__name__} runs on the CPU: {obstacle}")
        return not obstacle

    def _build(self, faiss: Any, vectors: Vectors, gpu: bool) -> Any:
        n, dim = len(vectors), vectors[:1].shape[1]
        index = self.new_index(faiss, n, dim)
        faiss.omp_set_num_threads(self.build_threads or 1)
        size = min(n, self.training_size(n))
        rows = np.sort(np.random.default_rng(self.seed).choice(n, size, replace=False))
        sample = np.empty((0, dim), np.float32) if index.is_trained else np.ascontiguousarray(vectors[rows], np.float32)
        blocks = (np.ascontiguousarray(vectors[at:at + BATCH], np.float32) for at in range(0, n, BATCH))
        if gpu:
            try:
                return faiss_gpu.build(faiss, index, sample, blocks)
            except RuntimeError as error:
                log_once(f"{type(self).__name__} is built on the CPU: the GPU gave up ({faiss_gpu.short(error)})")
                return self._build(faiss, vectors, gpu=False)
        if not index.is_trained:
            index.train(sample)
        for block in blocks:
            index.add(block)
        return index

    def training_size(self, n: int) -> int:
        """Return how many of n vectors the index is trained on."""
        return min(n, 100_000)


@stage
class IVF(Approximate):
    """Inverted lists: vectors are grouped by k-means, and the lists nearest to the query are searched."""

    on_gpus: ClassVar[bool] = True
    build_fields: ClassVar[tuple[str, ...]] = ("nlist",)
    search_fields: ClassVar = ("nprobe",)

    nlist: Positive | None = None  # null: 4 sqrt(n)
    nprobe: Positive = 32  # lists searched per query: more is slower and finds more

    def lists(self, n: int) -> int:
        """Return the number of lists: as configured, else 4 sqrt(n), FAISS's rule of thumb."""
        if self.nlist is not None and self.nlist > n:
            raise MemlabError(f"nlist {self.nlist} is more than the pool's {n} vectors", where="search.dense.index",
                              fix="lower nlist, or leave it null")
        return self.nlist or min(n, int(4 * n**0.5))

    def new_index(self, faiss: Any, n: int, dim: int) -> Any:
        """Return an index of inverted lists that hold whole vectors."""
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, self.lists(n), faiss.METRIC_INNER_PRODUCT)
        self.configure(index.cp)
        return index

    def configure(self, clustering: Any) -> None:
        """Set the seed and the sample size of a k-means clustering."""
        clustering.seed, clustering.max_points_per_centroid = self.seed, 64

    def training_size(self, n: int) -> int:
        """Return 64 vectors per list."""
        return max(64 * self.lists(n), 10_000)

    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:  # noqa: ARG002  (as many lists for any depth)
        """Return which lists and vectors to search."""
        return faiss.SearchParametersIVF(nprobe=self.nprobe, sel=selector)


@stage
class IVFPQ(IVF):
    """Inverted lists of product-quantised codes: m sub-vectors of ``bits`` bits each."""

    build_fields: ClassVar = ("nlist", "m", "bits")

    refine: Positive = 8  # codes are coarse
    m: Positive = 48  # bytes per vector at 8 bits (uncompressed: 1,536 at 384 dimensions); divides the dimensions
    bits: Annotated[int, Field(ge=4, le=12)] = 8

    def new_index(self, faiss: Any, n: int, dim: int) -> Any:
        """Return an index of inverted lists that hold codes; raises MemlabError unless m divides dim."""
        if dim % self.m:
            fits = [m for m in range(1, dim + 1) if dim % m == 0 and m >= 8]
            raise MemlabError(f"m {self.m} does not divide the vectors' {dim} dimensions", where="search.dense.index",
                              fix=f"choose m among {fits}")
        index = faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, self.lists(n), self.m, self.bits,
                                 faiss.METRIC_INNER_PRODUCT)
        self.configure(index.cp)
        self.configure(index.pq.cp)
        return index


@stage
class HNSW(Approximate):
    """A navigable small-world graph (Malkov and Yashunin 2018) on the CPU; ``storage`` sq8 keeps 8-bit codes in it."""

    build_fields: ClassVar = ("M", "ef_construction", "storage")
    search_fields: ClassVar = ("ef_search",)

    M: Annotated[int, Field(ge=4)] = 32  # links per vector
    ef_construction: Positive = 100  # breadth of the search that links a new vector
    ef_search: Positive = 128  # breadth of a search; never less than depth
    storage: Literal["flat", "sq8"] = "flat"  # sq8: 8-bit codes in the graph, a quarter of the memory

    def new_index(self, faiss: Any, n: int, dim: int) -> Any:  # noqa: ARG002  (a graph grows with its vectors)
        """Return an empty graph."""
        if self.storage == "sq8":
            index = faiss.IndexHNSWSQ(dim, faiss.ScalarQuantizer.QT_8bit, self.M, faiss.METRIC_INNER_PRODUCT)
        else:
            index = faiss.IndexHNSWFlat(dim, self.M, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = self.ef_construction
        index.hnsw.rng = faiss.RandomGenerator(self.seed)
        return index

    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:
        """Return how widely to search: at least as wide as what is wanted."""
        return faiss.SearchParametersHNSW(efSearch=max(self.ef_search, wanted), sel=selector)


@stage
class SQ8(Approximate):
    """Every vector is compared, in 8 bits per dimension, on the CPU: FAISS has no such index for GPUs."""

    refine: Positive = 2  # codes are nearly exact

    def new_index(self, faiss: Any, n: int, dim: int) -> Any:  # noqa: ARG002  (codes grow with their vectors)
        """Return an empty array of codes."""
        return faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)

    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:  # noqa: ARG002  (every vector is compared)
        """Return which vectors to search."""
        return faiss.SearchParameters(sel=selector)


@dataclass(frozen=True)
class _FaissSearcher:
    """A FAISS index, and the vectors that are searched in it."""

    config: Approximate
    faiss: Any
    index: Any
    vectors: Vectors
    exact: Searcher
    gpu: faiss_gpu.GpuSearch | None

    def search(self, queries: Floats, visible: Ints, depth: int) -> Neighbours:
        """Search with the index where it pays; what may be found is a selector inside the search."""
        neighbours: Neighbours = [(np.empty(0, np.int64), np.empty(0, np.float32))] * len(queries)
        least = max(1, self.config.exact_below)
        exact = np.flatnonzero(visible < least).tolist()
        for limit in np.unique(visible[visible >= least]).tolist():
            rows = np.flatnonzero(visible == limit)
            for row, at in zip(rows.tolist(), self._candidates(queries[rows], limit, depth)):
                if len(at) < min(depth, limit):
                    exact.append(row)  # the index ran out of lists or links
                else:
                    neighbours[row] = at, self.vectors[at] @ queries[row]
        for row, result in zip(exact, self.exact.search(queries[exact], visible[exact], depth)):
            neighbours[row] = result
        return neighbours

    def _candidates(self, queries: Floats, limit: int, depth: int) -> list[Ints]:
        """Return the positions of the nearest of the first ``limit`` vectors for each query."""
        wanted = min(depth * self.config.refine, limit)
        everything = limit == self.index.ntotal
        rows = np.ascontiguousarray(queries, np.float32)
        found = self.gpu.search(rows, wanted) if self.gpu and everything else None
        if found is None:
            selector = None if everything else self.faiss.IDSelectorRange(0, limit)
            _, found = self.index.search(rows, wanted, params=self.config.parameters(self.faiss, wanted, selector))
        return [at[at >= 0] for at in found]
