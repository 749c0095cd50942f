"""Queries that are the unchanged questions, and the control that searches with the text of another one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from memlab.data.numbering import question_digests
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, frame
from memlab.store import Store
from memlab.support.errors import MemlabError


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


@stage
class ShuffledQueries:
    """One query per question, with the text of a question about another corpus, drawn by ``seed``.

    The evidence that an arm still finds, it finds without the question. Each text is used once. A text comes from the
    same corpus only if that corpus has more than half of all questions.
    """

    reads: ClassVar = ("questions", "turns")
    writes: ClassVar = ("queries",)

    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries; raise MemlabError if there is only one question."""
        questions = tables["questions"]
        if questions.height == 1:
            raise MemlabError("a single question has no other whose words it could take", where="query/wrong",
                              fix="load more questions")
        by_content = questions.with_columns(question_digests(questions, tables["turns"])["digest"]).sort(
            "digest", maintain_order=True)
        drawn = by_content[np.random.default_rng(self.seed).permutation(questions.height)]
        # in blocks of one corpus, in the order drawn
        rows = drawn.with_row_index("at").sort(pl.col("at").min().over("corpus"), "at")
        # a step as long as the largest block leads out of every block, if that is at most half of all
        largest = int(rows["corpus"].value_counts()["count"].max() or 0)  # type: ignore[call-overload, arg-type]
        step = min(largest, rows.height // 2)
        other = rows.select("question", pl.concat([rows["text_id"][step:], rows["text_id"][:step]]))
        swapped = questions.drop("text_id").join(other, on="question", maintain_order="left")
        return Tables(queries=query_table(swapped, "wrong"))
