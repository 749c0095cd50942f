"""Search by single vectors: the cosine of dense vectors, and the inner product of learned sparse ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from memlab.models.local.embedder import SparseTermEncoder, term_matrix
from memlab.models.protocols import Embedder, Floats, Ints
from memlab.pipeline.stage import Names, spec, stage
from memlab.pipeline.tables import Tables, empty
from memlab.stages.search.exact import Flat, Index, Searcher, Vectors
from memlab.stages.search.hits import MATCH, HitsBuilder, VisiblePool, digits_of, memory_pools, pools, visible_pools
from memlab.store import Store
from memlab.store.store import Rows, encode


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
        searched = store.cached(tables, ("memories",), ("pools", self.kinds),
                                lambda: memory_pools(memories, self.kinds))
        layout = list(visible_pools(searched, queries, tables["questions"]))
        if not layout:
            return Tables(hits=empty("hits"))
        query_rows = np.unique(np.concatenate([seen.queries for seen in layout]))
        query_vectors = self.query_vectors(tables, store, query_rows)
        memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
        hits, keys = HitsBuilder(self.floor, digits_of(self.embedder)), Keys(self.embedder, layout, tables, store)
        settings = (str(self.embedder.identity()), str(spec(self.index)))
        for seen in layout:  # one after another: an experiment has hundreds of indexes
            searcher = store.cached(tables, ("memories",), ("vectors", settings, seen.corpus, seen.kind),
                                    partial(self._open, keys, seen, store))
            questions = query_vectors[np.searchsorted(query_rows, seen.queries)]
            results = searcher.search(questions, seen.visible, self.depth)
            for query, (at, scores) in zip(seen.queries, results):
                hits.add(f"{self.name}:{seen.kind}", query_ids[query], memory_ids[seen.memories[at]], scores,
                         self.depth)
        return Tables(hits=hits.frame())

    def _open(self, keys: Keys, pool: VisiblePool, store: Store) -> Searcher:
        vectors = keys.vectors(pool)
        with store.caching():
            return self.index.open(vectors, store.root / "indexes")

    def query_vectors(self, tables: Tables, store: Store, rows: Ints) -> Floats:
        """Return the vectors of some rows of ``queries``, (n, dim)."""
        texts = tables["queries"]["text_id"].gather(rows)
        return encode(store, self.embedder, tables["texts"], texts, "query")[:]


class Keys:
    """The vectors of the keys of some pools, which are encoded together when the first of them is asked for."""

    def __init__(self, embedder: Embedder, pools: Sequence[VisiblePool], tables: Tables, store: Store) -> None:
        self._embedder, self._pools, self._tables, self._store = embedder, pools, tables, store

    def vectors(self, pool: VisiblePool) -> Vectors:
        """Return the vectors (n, d) of one pool, in its order."""
        rows, encoded = self._encoded
        vectors = Rows(encoded.base, encoded.rows[np.searchsorted(rows, pool.memories)])
        is_cached = self._store.caches_indexes and isinstance(encoded.base, np.ndarray)  # else too many for the memory
        return vectors[:] if is_cached else vectors

    @cached_property
    def _encoded(self) -> tuple[Ints, Rows]:
        rows = np.unique(np.concatenate([pool.memories for pool in self._pools]))
        keys = self._tables["memories"]["key_id"].gather(rows)
        return rows, encode(self._store, self._embedder, self._tables["texts"], keys, "document")
