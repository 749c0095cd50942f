"""Dense search: the cosine between a query's vector and a memory's key vector, one lane a kind of memory."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from memlab.models.protocols import Embedder
from memlab.search.as_of import pools
from memlab.search.exact import Flat, Index
from memlab.search.hits import HitsBuilder
from memlab.stage import Names, stage
from memlab.store import Store
from memlab.store.vectors import Rows, encode, index_folder
from memlab.tables import DIGITS, Tables, empty


@stage
class Dense:
    """Search by vectors. Each distinct text is encoded once, whatever the number of corpora that hold it.

    A query's ``weight`` is not applied here. Lanes are named ``<name>:<kind>``. Memories whose cosine is below
    ``floor`` are no hits.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    embedder: Embedder
    index: Index = Flat()
    kinds: Names | None = None  # every kind of memory is a lane
    depth: Annotated[int, Field(ge=1)] = 1000  # deep: fusion and metrics at k <= 50 never see the cut
    name: str = "dense"  # lanes are named dense:<kind>
    # lowest cosine of a hit, e.g. 0.5 (ElizaOS); null: the depth alone limits
    floor: Annotated[float, Field(ge=-1, le=1)] | None = None

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query.

        Raises MemlabError for an unknown kind, or where an index needs a package that is not installed.
        """
        queries, memories = tables["queries"], tables["memories"]
        layout = list(pools(queries, tables["questions"], memories, self.kinds))
        if not layout:
            return Tables(hits=empty("hits"))
        keyed = np.unique(np.concatenate([p.memories for p in layout]))
        asked = np.unique(np.concatenate([p.queries for p in layout]))
        keys = encode(store, self.embedder, tables["texts"], memories["key_id"].gather(keyed), "document")
        asks = encode(store, self.embedder, tables["texts"], queries["text_id"].gather(asked), "query")
        memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
        hits = HitsBuilder()
        for pool in layout:
            vectors = Rows(keys.base, keys.rows[np.searchsorted(keyed, pool.memories)])
            searcher = self.index.open(vectors, index_folder(store))
            found = searcher.search(asks[np.searchsorted(asked, pool.queries)], pool.seen, self.depth)
            for query, (at, scores) in zip(pool.queries, found):
                if self.floor is not None:
                    high = np.round(scores.astype(np.float64), DIGITS) >= self.floor
                    at, scores = at[high], scores[high]
                hits.add(f"{self.name}:{pool.kind}", query_ids[query], memory_ids[pool.memories[at]], scores,
                         self.depth)
        return Tables(hits=hits.frame())
