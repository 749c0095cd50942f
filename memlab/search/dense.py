"""Search by single vectors: the cosine of dense vectors, and the inner product of learned sparse ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from memlab.models.local.embedder import SparseTermEncoder, term_matrix
from memlab.models.protocols import Embedder, Floats, Ints
from memlab.search.cached_pools import CachedPools
from memlab.search.exact import Flat, Index, Searcher, Vectors
from memlab.search.faiss_index import Approximate, CachedIndex
from memlab.search.hits import MATCH, HitsBuilder, MemoryPool, digits_of, memory_pools, of_kinds, pools, visible_pools
from memlab.stage import Names, spec, stage
from memlab.store import Store
from memlab.store.store import Rows, encode
from memlab.tables import Tables, empty


@stage
class SparseSearch:
    """Search by weighted tokens. Each distinct text is encoded once, however many corpora hold it.

    A memory that shares no token with the query is no hit. Lanes are named ``<name>:<kind>``. A query's ``weight`` is
    not applied here.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    encoder: SparseTermEncoder
    kinds: Names | None = None  # kinds of memories to search; null: all
    depth: Annotated[int, Field(ge=1)] = 1000  # most hits per query and kind
    name: str = "lexical"  # lanes are named lexical:<kind>

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        queries, memories, texts = tables["queries"], tables["memories"], tables["texts"]
        layout = list(pools(queries, tables["questions"], memories, self.kinds))
        if not layout:
            return Tables(hits=empty("hits"))
        memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
        hits = HitsBuilder(MATCH)
        for pool in layout:
            keys = encode(store, self.encoder, texts, memories["key_id"].gather(pool.memories), "document")
            asked = encode(store, self.encoder, texts, queries["text_id"].gather(pool.queries), "query")
            weights, questions = term_matrix(keys[:]).tocsc(), term_matrix(asked[:])
            for i, (query, visible) in enumerate(zip(pool.queries, pool.visible.tolist())):
                if visible:
                    question = questions[[i]]
                    known = question.indices < weights.shape[1]
                    scores = weights[:, question.indices[known]] @ question.data[known]
                    hits.add(f"{self.name}:{pool.kind}", query_ids[query], memory_ids[pool.memories[:visible]],
                             scores[:visible], self.depth)
        return Tables(hits=hits.frame())


@stage
class Dense:
    """Search by vectors. Each distinct text is encoded once, however many corpora hold it.

    Lanes are named ``<name>:<kind>``. A query's ``weight`` is not applied here.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    embedder: Embedder
    index: Index = Flat()
    kinds: Names | None = None  # kinds of memories to search; null: all
    depth: Annotated[int, Field(ge=1)] = 1000  # deep: fusion and metrics at k <= 50 never see the cut
    name: str = "dense"  # lanes are named dense:<kind>
    # lowest cosine of a hit, e.g. 0.5 (ElizaOS); null: the depth alone limits
    floor: Annotated[float, Field(ge=-1, le=1)] | None = None

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query.

        Raises MemlabError for an unknown kind, or where an index needs a package that is not installed.
        """
        queries, memories = tables["queries"], tables["memories"]
        cached = self._cached(tables, store) if store.caches_indexes else None
        pools = [pool.rows for pool in cached] if cached else memory_pools(memories, self.kinds)
        layout = list(visible_pools(pools, queries, tables["questions"]))
        if not layout:
            return Tables(hits=empty("hits"))
        corpora = {seen.corpus for seen in layout}
        opened = ([pool for pool in cached if pool.rows.corpus in corpora] if cached else
                  self._open([pool for pool in pools if pool.corpus in corpora], tables, store))
        query_rows = np.unique(np.concatenate([seen.queries for seen in layout]))
        query_vectors = self.query_vectors(tables, store, query_rows)
        memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
        hits = HitsBuilder(self.floor, digits_of(self.embedder))
        for seen, pool in zip(layout, opened):  # one after another: an experiment has hundreds of indexes
            questions = query_vectors[np.searchsorted(query_rows, seen.queries)]
            results = pool.searcher.search(questions, seen.visible, self.depth)
            for query, (at, scores) in zip(seen.queries, results):
                hits.add(f"{self.name}:{seen.kind}", query_ids[query], memory_ids[seen.memories[at]], scores,
                         self.depth)
        return Tables(hits=hits.frame())

    def query_vectors(self, tables: Tables, store: Store, rows: Ints) -> Floats:
        """Return the vectors of some rows of ``queries``, (n, dim)."""
        texts = tables["queries"]["text_id"].gather(rows)
        return encode(store, self.embedder, tables["texts"], texts, "query")[:]

    def _cached(self, tables: Tables, store: Store) -> list[VectorPool]:
        """Return the pools of a live memory, whose vectors are gathered once for all questions."""
        def make() -> list[VectorPool]:
            return [*self._open(memory_pools(tables["memories"], self.kinds), tables, store)]

        name = f"vector pools {self.embedder.identity()} {spec(self.index)}"
        return store.index(name, CachedPools[VectorPool]).of(tables, self.kinds, make, store.whole)

    def _open(self, pools: Sequence[MemoryPool], tables: Tables, store: Store) -> Iterator[VectorPool]:
        """Yield the pools with their vectors, each in its index."""
        if not pools:
            return
        rows = np.unique(np.concatenate([pool.memories for pool in pools]))
        key_ids = tables["memories"]["key_id"]
        keys = encode(store, self.embedder, tables["texts"], key_ids.gather(rows), "document")
        for pool in pools:
            vectors: Floats | Rows = Rows(keys.base, keys.rows[np.searchsorted(rows, pool.memories)])
            if store.caches_indexes and store.whole is None and isinstance(keys.base, np.ndarray):
                vectors = vectors[:]
            with store.caching():
                searcher = self._searcher(vectors, key_ids.gather(pool.memories), pool.kind, tables, store)
            yield VectorPool(pool, vectors, searcher)

    def _searcher(self, vectors: Vectors, keys: pl.Series, kind: str, tables: Tables, store: Store) -> Searcher:
        """Return a searcher of the vectors of some keys (n,); a live memory caches the index of all keys of a kind."""
        folder = store.root / "indexes"
        if not (store.caches_indexes and isinstance(self.index, Approximate)):
            return self.index.open(vectors, folder)

        def whole() -> tuple[pl.Series, Rows]:
            memories = (tables if store.whole is None else store.whole)["memories"]
            texts = of_kinds(memories, (kind,))["key_id"].unique(maintain_order=True)
            return texts, encode(store, self.embedder, tables["texts"], texts, "document")

        name = f"vectors {self.embedder.identity()} {self.index.built_from()} {kind}"
        return store.index(name, CachedIndex).of(self.index, keys, vectors, folder, whole)


@dataclass(frozen=True, eq=False)
class VectorPool:
    """A pool of memories with their vectors (n, d), in its order, and a searcher of these."""

    rows: MemoryPool
    vectors: Floats | Rows
    searcher: Searcher
