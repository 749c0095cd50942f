"""The shuffled-query control: each question searches with the text of another one."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables, frame


@stage
class ShuffledQueries:
    """One query per question, with the text of a question about another corpus, drawn by ``seed``.

    What an arm still finds, it finds without knowing the question. Each text is used once. Only if one corpus has more
    than half of all questions may a text come from the same corpus.
    """

    reads: ClassVar = ("questions",)
    writes: ClassVar = ("queries",)

    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries; raises MemlabError if there is only one question."""
        questions = tables["questions"]
        if questions.height == 1:
            raise MemlabError("one question alone has no other to be confused with", where="query/wrong",
                              fix="load more questions")
        order = np.random.default_rng(self.seed).permutation(questions.height)
        # corpora in blocks, in the order drawn
        rows = questions[order].with_row_index("at").sort(pl.col("at").min().over("corpus"), "at")
        # a step as long as the largest block leaves every block, if it is at most half of all
        largest = int(rows["corpus"].value_counts()["count"].max() or 0)  # type: ignore[call-overload, arg-type]
        step = min(largest, rows.height // 2)
        other = pl.concat([rows["text_id"][step:], rows["text_id"][:step]])
        return Tables(queries=frame("queries", {
            "query": rows["question"].cast(pl.Int64), "question": rows["question"], "text_id": other,
            "kind": pl.repeat("wrong", rows.height, eager=True, dtype=pl.String),
            "weight": pl.repeat(1.0, rows.height, eager=True),
        }).sort("query"))
