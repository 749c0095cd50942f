"""Approximate search with FAISS: IVF, HNSW, IVF-PQ and 8-bit codes (what they share is in ``approximate``)."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from memlab.errors import MemlabError
from memlab.search.approximate import Approximate, Positive
from memlab.stage import stage


@stage
class IVF(Approximate):
    """Inverted lists: vectors are grouped by k-means, and the lists nearest to the query are searched."""

    nlist: Positive | None = None
    nprobe: Positive = 32

    def lists(self, n: int) -> int:
        """Return the number of lists: as configured, else 4 sqrt(n), FAISS's rule of thumb."""
        if self.nlist is not None and self.nlist > n:
            raise MemlabError(f"nlist {self.nlist} is more than the pool's {n} vectors", where="search.dense.index",
                              fix="lower nlist, or leave it null")
        return self.nlist or min(n, int(4 * n**0.5))

    def made(self, faiss: Any, n: int, dim: int) -> Any:
        """Return an index of inverted lists that hold whole vectors."""
        index = faiss.IndexIVFFlat(faiss.IndexFlatIP(dim), dim, self.lists(n), faiss.METRIC_INNER_PRODUCT)
        return self._seeded(index)

    def _seeded(self, index: Any) -> Any:
        index.cp.seed = self.seed
        index.cp.max_points_per_centroid = 64
        return index

    def training_size(self, n: int) -> int:
        """Train on 64 vectors a list."""
        return max(64 * self.lists(n), 10_000)

    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:  # noqa: ARG002  (as many lists for any depth)
        """Return which lists and vectors to search."""
        return faiss.SearchParametersIVF(nprobe=self.nprobe, sel=selector)

    def built_from(self) -> dict[str, Any]:
        """Name what the index itself depends on."""
        return {**super().built_from(), "nlist": self.nlist}

    def identity(self) -> dict[str, Any]:
        """All that can change what is found."""
        return {**super().identity(), "nprobe": self.nprobe}


@stage
class IVFPQ(IVF):
    """Inverted lists of product-quantised codes: m sub-vectors of ``bits`` bits each; ``refine`` times as many are
    taken from the codes as are wanted, and ranked by their exact products."""

    refine: Positive = 8
    m: Positive = 48
    bits: Annotated[int, Field(ge=4, le=12)] = 8

    def made(self, faiss: Any, n: int, dim: int) -> Any:
        """Return an index of inverted lists that hold codes; raises MemlabError unless m divides dim."""
        if dim % self.m:
            fits = [m for m in range(1, dim + 1) if dim % m == 0 and m >= 8]
            raise MemlabError(f"m {self.m} does not divide the vectors' {dim} dimensions", where="search.dense.index",
                              fix=f"choose m among {fits}")
        index = self._seeded(faiss.IndexIVFPQ(faiss.IndexFlatIP(dim), dim, self.lists(n), self.m, self.bits,
                                              faiss.METRIC_INNER_PRODUCT))
        index.pq.cp.seed = self.seed
        index.pq.cp.max_points_per_centroid = 64
        return index

    def built_from(self) -> dict[str, Any]:
        """Name what the index itself depends on."""
        return {**super().built_from(), "m": self.m, "bits": self.bits}


@stage
class HNSW(Approximate):
    """A navigable small-world graph (Malkov and Yashunin 2018); ``storage`` sq8 keeps 8-bit codes in it."""

    on_gpu: ClassVar[bool] = False

    M: Annotated[int, Field(ge=4)] = 32
    ef_construction: Positive = 100
    ef_search: Positive = 128
    storage: Literal["flat", "sq8"] = "flat"

    def made(self, faiss: Any, n: int, dim: int) -> Any:  # noqa: ARG002  (a graph grows with its vectors)
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

    def built_from(self) -> dict[str, Any]:
        """Name what the index itself depends on."""
        return {**super().built_from(), "M": self.M, "ef_construction": self.ef_construction, "storage": self.storage}

    def identity(self) -> dict[str, Any]:
        """All that can change what is found."""
        return {**super().identity(), "ef_search": self.ef_search}


@stage
class SQ8(Approximate):
    """Every vector is compared, in 8 bits a dimension: a quarter of the memory."""

    refine: Positive = 2

    def made(self, faiss: Any, n: int, dim: int) -> Any:  # noqa: ARG002  (codes grow with their vectors)
        """Return an empty array of codes."""
        return faiss.IndexScalarQuantizer(dim, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)

    def parameters(self, faiss: Any, wanted: int, selector: Any) -> Any:  # noqa: ARG002  (every vector is compared)
        """Return which vectors to search."""
        return faiss.SearchParameters(sel=selector)
