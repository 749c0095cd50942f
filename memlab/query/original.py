"""Queries that are the unchanged questions."""

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
        """Return the queries."""
        return Tables(queries=query_table(tables["questions"], "original"))


def query_table(questions: pl.DataFrame, kind: str) -> pl.DataFrame:
    """Return one query per question, with its number and text."""
    return frame("queries", {
        "query": questions["question"].cast(pl.Int64), "question": questions["question"],
        "kind": pl.repeat(kind, questions.height, eager=True, dtype=pl.String),
        "text_id": questions["text_id"], "weight": pl.repeat(1.0, questions.height, eager=True)})
