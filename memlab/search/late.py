"""Late interaction as a lane of its own: every memory that a query may see is scored, one lane a kind of memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
import polars as pl
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.protocols import Ints, PairScorer
from memlab.search.eligible import Pool, distinct_texts, pools
from memlab.search.hits import HitsBuilder
from memlab.stage import Names, stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store

MaxPairs = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Layout:
    """Every (query, memory) pair that may be seen, pool by pool, query by query; and the distinct text pairs in it.

    memories: (n,) the row in ``memories`` of each pair. each: (n,) which text pair it is.
    pairs: (m, 2) row numbers in ``asks`` and ``keys``, each text pair once.
    """

    pools: list[Pool]
    memories: Ints
    each: Ints
    asks: pl.DataFrame
    keys: pl.DataFrame
    pairs: Ints


def layout(tables: Tables, kinds: Names | None, max_pairs: int) -> Layout | None:
    """Lay out all pairs, or None where there are none; the same texts are paired once, in however many corpora.

    Raises MemlabError for an unknown kind, or where there are more than ``max_pairs`` pairs.
    """
    queries, memories, texts = tables["queries"], tables["memories"], tables["texts"]
    seen = list(pools(queries, tables["questions"], memories, kinds))
    total = int(sum(p.seen.sum() for p in seen))
    if total > max_pairs:
        raise MemlabError(f"{total:,} pairs of query and memory are more than max_pairs = {max_pairs:,}",
                          where="search.late",
                          fix="rerank a pool instead (rank/rerank=late_interaction, search/late=none), "
                              f"or set search.late.max_pairs={total}")
    if total == 0:
        return None
    asks, ask_of = distinct_texts(texts, queries["text"])
    keys, key_of = distinct_texts(texts, memories["key"])
    query_rows = np.concatenate([np.repeat(p.queries, p.seen) for p in seen])
    memory_rows = np.concatenate([p.memories[:n] for p in seen for n in p.seen.tolist()])
    codes, each = np.unique(ask_of[query_rows] * keys.height + key_of[memory_rows], return_inverse=True)
    return Layout(seen, memory_rows, each, asks, keys, np.stack(np.divmod(codes, keys.height), axis=1))


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
    max_pairs: MaxPairs = 2_000_000
    name: str = "late"

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query.

        Raises MemlabError for an unknown kind, or where there are more than ``max_pairs`` pairs.
        """
        plan = layout(tables, self.kinds, self.max_pairs)
        if plan is None:
            return Tables(hits=empty("hits"))
        scores = store.pair_scores(self.scorer, plan.asks, plan.keys, plan.pairs)[plan.each]
        memory_ids, query_ids = tables["memories"]["memory"].to_numpy(), tables["queries"]["query"].to_numpy()
        hits, at = HitsBuilder(), 0
        for pool in plan.pools:
            for query, seen in zip(pool.queries, pool.seen.tolist()):
                hits.add(f"{self.name}:{pool.kind}", query_ids[query], memory_ids[plan.memories[at:at + seen]],
                         scores[at:at + seen], self.depth)
                at += seen
        return Tables(hits=hits.frame())
