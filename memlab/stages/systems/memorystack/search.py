"""MemoryStack's filter of sources: questions about the assistant's words search no other memories."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from memlab.pipeline.stage import Names, Stage, stage
from memlab.pipeline.tables import Tables, empty
from memlab.store import Store


@stage
class BySource:
    """Search, for questions of some classes, only the memories from some sources; for all others, all memories.

    The filter comes before the search: ranks, depth and document frequencies count only the memories that are left.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts", "classes")
    writes: ClassVar = ("hits",)

    search: Stage  # search/dense or search/lexical
    classes: Names = ("assistant",)  # of questions (query/classify)
    sources: Names = ("assistant",)  # of memories

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the hits of both kinds of questions."""
        asked = tables["classes"].filter(pl.col("class").is_in(list(self.classes)))["question"].unique()
        limited = pl.col("question").is_in(asked.implode())
        of_source = tables["memories"].filter(pl.col("source").is_in(list(self.sources)))
        parts = [tables.updated({"queries": queries, "memories": memories}) for queries, memories in (
            (tables["queries"].filter(~limited), tables["memories"]), (tables["queries"].filter(limited), of_source))
            if queries.height]
        hits = [self.search.run(part.only(self.search.reads), store)["hits"] for part in parts]
        return Tables(hits=pl.concat(hits) if hits else empty("hits"))
