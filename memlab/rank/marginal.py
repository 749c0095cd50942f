"""Selection by the value of each unit: one threshold for all questions, or the best units within each one's budget.

Units inside the ranking may be skipped. A learned stage adds the columns that the rules read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
import polars as pl

from memlab.rank.select import POINTS, Count, need
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

FIX = "choose rank/select=marginal with learn/probability=crossfit or loaded"

BUDGETS = tuple(round(float(tokens)) for tokens in np.geomspace(30, 12_000, POINTS))
"""Tokens at which the curve of a rule is drawn, whatever its own number."""


@stage
class MeanBudget:
    """Select the units whose ``shown_from`` is at most ``tokens``: the mean tokens at which one threshold shows them.

    The number of tokens differs by question; its mean is near ``tokens`` where the data are like those that the
    threshold was chosen on.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    tokens: Count = 500  # mean over questions, by the pipeline's token counter

    def variations(self) -> Iterator[MeanBudget]:
        """Yield the rule at each of ``BUDGETS``."""
        for tokens in BUDGETS:
            yield replace(self, tokens=tokens)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        need(ranking, "shown_from", FIX)
        if not ranking.height:
            return Tables(ranking=ranking)
        return Tables(ranking=ranking.with_columns(
            (pl.col("shown_from") <= self.tokens).fill_null(False).alias("selected")))


@stage
class EachBudget:
    """Select units in order of ``value`` while they fit into ``tokens`` per question; the first is always shown.

    A unit that does not fit is skipped; equal values go by rank.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    tokens: Count = 500  # of every question, by the pipeline's token counter

    def variations(self) -> Iterator[EachBudget]:
        """Yield the rule at each of ``BUDGETS``."""
        for tokens in BUDGETS:
            yield replace(self, tokens=tokens)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        need(ranking, "value", FIX)
        valued = ranking.with_row_index("row").drop_nulls("value").sort(
            "question", "value", "rank", descending=[False, True, False])
        if not valued.height:
            return Tables(ranking=ranking.with_columns(pl.lit(False).alias("selected")))
        question = valued["question"].rank("dense").to_numpy().astype(np.int64) - 1
        place = valued.select(pl.int_range(pl.len()).over("question")).to_series().to_numpy()
        tokens = np.full((question.max() + 1, place.max() + 1), np.inf)  # by question and order of value
        tokens[question, place] = valued["tokens"].to_numpy()
        left = np.full(len(tokens), float(self.tokens))
        chosen = np.zeros(tokens.shape, bool)
        for i in range(tokens.shape[1]):
            chosen[:, i] = (tokens[:, i] <= left) | ((i == 0) & np.isfinite(tokens[:, i]))
            left -= np.where(chosen[:, i], tokens[:, i], 0.0)
        selected = np.zeros(ranking.height, bool)
        selected[valued["row"].to_numpy()] = chosen[question, place]
        return Tables(ranking=ranking.with_columns(pl.Series("selected", selected)))
