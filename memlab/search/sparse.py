"""Learned sparse search: inner products of token weights, one lane per kind of memory."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from memlab.models.local.embedder import SparseTermEncoder, term_matrix
from memlab.search.as_of import pools
from memlab.search.hits import MATCH, HitsBuilder
from memlab.stage import Names, stage
from memlab.store import Store
from memlab.store.vectors import encode
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
