"""Queries that are the questions as they were asked."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, frame


@stage
class Original:
    """One query per question, of weight 1, without a time window."""

    reads: ClassVar = ("questions",)
    writes: ClassVar = ("queries",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the queries, numbered as their questions."""
        questions = tables["questions"]
        return Tables(queries=frame("queries", {
            "query": questions["question"].cast(pl.Int64), "question": questions["question"],
            "kind": pl.repeat("original", questions.height, eager=True, dtype=pl.String),
            "text_id": questions["text_id"], "weight": pl.repeat(1.0, questions.height, eager=True),
        }))
