"""The wrong-question control: every question searches with the words of another one."""

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
    """One query a question, with the text of a question about another corpus, drawn once for a seed.

    What an arm still finds, it finds without knowing what was asked. Each text is used once; only where one
    corpus holds more than half of all questions may it come from the same corpus.
    """

    reads: ClassVar = ("questions",)
    writes: ClassVar = ("queries",)

    seed: int = 0  # another seed, other pairs of questions

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries; raises MemlabError where there is but one question."""
        asked = tables["questions"]
        if asked.height == 1:
            raise MemlabError("one question alone has no other to be confused with", where="query/wrong",
                              fix="load more questions")
        order = np.random.default_rng(self.seed).permutation(asked.height)
        drawn = asked[order].with_row_index("at")
        rows = drawn.sort(pl.col("at").min().over("corpus"), "at")  # corpora in blocks, in the order drawn
        # a step as long as the largest block leaves every block, if it is at most half of all
        largest = int(rows["corpus"].value_counts()["count"].max() or 0)  # type: ignore[call-overload, arg-type]
        step = min(largest, rows.height // 2)
        other = pl.concat([rows["text_id"][step:], rows["text_id"][:step]])
        return Tables(queries=frame("queries", {
            "query": rows["question"].cast(pl.Int64), "question": rows["question"], "text_id": other,
            "kind": pl.repeat("wrong", rows.height, eager=True, dtype=pl.String),
            "weight": pl.repeat(1.0, rows.height, eager=True),
        }).sort("query"))
