"""Learned list truncation: the ranking is cut where a network, fitted on the other folds, expects the best reward."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.data.groups import GroupBy
from memlab.learn.folds import FoldCount, folds
from memlab.learn.labels import EvidenceLevel, smallest_k
from memlab.learn.truncation.model import COSTS, Lists, Reals, fit
from memlab.rank.select import Count, need
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

Places = NDArray[np.int64]
Cost = Annotated[float, Field(gt=0, lt=1)]


@stage
class CutAtCost:
    """Select the units whose ``cut_cost`` is at least ``cost``."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    cost: Cost = 0.01

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        need(tables["ranking"], "cut_cost", "choose rank/select=choppy")
        return Tables(ranking=tables["ranking"].with_columns(
            (pl.col("cut_cost") >= self.cost).fill_null(False).alias("selected")))


@stage(sees=("gold",), fits="all")
class LearnedTruncation:
    """Cut each ranking by a network over its scores and tokens (``memlab.learn.truncation.model``).

    Each question's cut is made by a network that was fitted on the other folds. Questions that do not count in
    retrieval averages are cut, not fitted on. ``cost`` is what a unit of mean length costs, as a share of a question
    with complete evidence. The column ``cut_cost`` is the largest cost at which a unit is shown.
    """

    reads: ClassVar = ("ranking", "units", "evidence", "gold", "questions", "turns")
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched twin

    cost: Cost = 0.01
    level: EvidenceLevel = "turn"  # the evidence that must be complete
    folds: FoldCount = 5
    by: GroupBy = "auto"  # groups: corpus where a corpus has several questions, else evidence sessions of one text
    seed: int = 0
    depth: Count = 60  # ranks beyond are never shown
    epochs: Count = 40

    def variations(self) -> Iterator[CutAtCost]:
        """Yield the rule at each cost, for a ranking that it has cut."""
        for cost in COSTS:
            yield CutAtCost(cost=cost)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``cut_cost`` and ``selected``."""
        ranking = tables["ranking"].drop("cut_cost", strict=False)
        if not ranking.height:
            return Tables(ranking=ranking)
        need(ranking, "tokens", "run read/measure before the selection")
        near = ranking.filter(pl.col("rank") <= self.depth).sort("question", "rank")
        costs = pl.Series("cut_cost", self._cut_costs(near, tables))
        joined = ranking.join(near.select("question", "unit", costs), on=["question", "unit"], how="left",
                              maintain_order="left")
        return CutAtCost(cost=self.cost).run(Tables(ranking=joined), store)

    def _cut_costs(self, near: pl.DataFrame, tables: Tables) -> Reals:
        """Return the cut cost of each row of ``near``."""
        fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], self.folds, self.seed, self.by)
        needed = smallest_k(near, tables["units"], tables["evidence"], self.level).join(
            tables["gold"].filter("scored"), on="question", how="semi").select("question", "complete")
        known = near.select(pl.col("question").unique().sort()).join(fold_of, on="question", how="left").join(
            needed.with_columns(pl.lit(True).alias("counts")), on="question", how="left").sort("question")
        lists, q, r = _lists(near, known["complete"].cast(pl.Float64).fill_null(float("inf")).to_numpy(), self.depth)
        counts, fold = known["counts"].fill_null(False).to_numpy(), known["fold"].to_numpy()
        costs = np.zeros(lists.scores.shape)
        for part in np.unique(fold):
            fitted = fit(lists.part(counts & (fold != part)), self.seed, self.epochs)
            costs[fold == part] = fitted.cut_costs(lists.part(fold == part))
        return costs[q, r]


def _lists(near: pl.DataFrame, complete: Reals, depth: int) -> tuple[Lists, Places, Places]:
    """Return the rankings (question, rank; sorted) as arrays, and the place of each row in them."""
    q = near["question"].rank("dense").to_numpy().astype(np.int64) - 1
    r = near["rank"].to_numpy().astype(np.int64) - 1
    exists = np.zeros((len(complete), depth), bool)
    exists[q, r] = True
    scores, tokens = np.zeros((2, len(complete), depth))
    scores[q, r], tokens[q, r] = near["score"].to_numpy(), near["tokens"].fill_null(0.0).to_numpy()
    return Lists(scores, tokens, exists, complete), q, r
