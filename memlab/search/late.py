"""Late interaction as a lane of its own: every memory that a query may see is scored, one lane a kind of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.protocols import PairScorer
from memlab.search.eligible import distinct_texts, pools
from memlab.search.hits import HitsBuilder
from memlab.stage import Names, stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Late:
    """Score every (query, key) pair. Corpora must be small: a pair costs a model's work.

    The same pair of texts is scored once, in however many corpora it stands. Lanes are named ``<name>:<kind>``.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    scorer: PairScorer
    kinds: Names | None = None
    depth: Annotated[int, Field(ge=1)] = 1000
    max_pairs: Annotated[int, Field(ge=1)] = 2_000_000
    name: str = "late"

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query.

        Raises MemlabError for an unknown kind, or where there are more than ``max_pairs`` pairs.
        """
        queries, memories, texts = tables["queries"], tables["memories"], tables["texts"]
        layout = list(pools(queries, tables["questions"], memories, self.kinds))
        total = int(sum(p.seen.sum() for p in layout))
        if total > self.max_pairs:
            raise MemlabError(
                f"{total:,} pairs of query and memory are more than max_pairs = {self.max_pairs:,}",
                where="search.late",
                fix=f"rerank a pool instead (rank/rerank=late_interaction, search/late=none), "
                    f"or set search.late.max_pairs={total}")
        if total == 0:
            return Tables(hits=empty("hits"))
        asks, ask_of = distinct_texts(texts, queries["text"])
        keys, key_of = distinct_texts(texts, memories["key"])
        query_rows = np.concatenate([np.repeat(p.queries, p.seen) for p in layout])
        memory_rows = np.concatenate([p.memories[:n] for p in layout for n in p.seen.tolist()])
        codes, each = np.unique(ask_of[query_rows] * keys.height + key_of[memory_rows], return_inverse=True)
        pairs = np.stack(np.divmod(codes, keys.height), axis=1)
        scores = store.pair_scores(self.scorer, asks, keys, pairs)[each]
        memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
        hits, at = HitsBuilder(), 0
        for pool in layout:
            for query, seen in zip(pool.queries, pool.seen.tolist()):
                hits.add(f"{self.name}:{pool.kind}", query_ids[query], memory_ids[memory_rows[at:at + seen]],
                         scores[at:at + seen], self.depth)
                at += seen
        return Tables(hits=hits.frame())
