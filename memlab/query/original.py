"""Questions to queries: the question as it was asked."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, frame


@stage
class Original:
    """One query a question, of weight 1, without a time window."""

    reads: ClassVar = ("questions",)
    writes: ClassVar = ("queries",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the queries; a query bears its question's number."""
        asked = tables["questions"]
        return Tables(queries=frame("queries", {
            "query": asked["question"].cast(pl.Int64), "question": asked["question"],
            "kind": pl.repeat("original", asked.height, eager=True, dtype=pl.String),
            "text_id": asked["text_id"], "weight": pl.repeat(1.0, asked.height, eager=True),
        }))
