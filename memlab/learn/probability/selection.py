"""Marginal selection: units by their probability to be evidence, with one threshold for all questions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import polars as pl

from memlab.learn.probability.stage import ADDED, CrossFitProbability, LoadedProbability, joined, labels
from memlab.learn.probability.threshold import ValueChoice
from memlab.rank.select import Count, EachBudget, MeanBudget
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables


@stage(sees=("gold",), fits="all")
class Marginal:
    """Select by the probability of each unit: one threshold for all questions, or the best of each one's budget.

    ``shown=threshold`` shows every unit whose value exceeds one threshold, chosen for ``tokens`` per question on
    average on other data: the other folds, or the data of a saved fit. ``shown=budget`` is its opponent: every question
    has the same budget and is filled in order of value. At least ``min_k`` units of a question are shown.
    """

    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # the number of units differs by question: compared with a token-matched twin

    probability: CrossFitProbability | LoadedProbability
    tokens: Count = 500  # per question, by the pipeline's token counter: the mean, or each with shown=budget
    # unit: p; token: p / tokens; share: p / tokens / expected evidence units of the question; auto: the best of the
    # three on the other folds
    value: ValueChoice = "share"
    shown: Literal["threshold", "budget"] = "threshold"
    min_k: Count = 1  # with shown=budget the first is always shown

    @property
    def reads(self) -> tuple[str, ...]:
        """Tables of the probability: a saved fit reads no gold."""
        return self.probability.reads

    def variations(self) -> Iterator[MeanBudget] | Iterator[EachBudget]:
        """Yield the rule with other budgets, for a ranking that it has selected from."""
        return self._rule().variations()

    def _rule(self) -> MeanBudget | EachBudget:
        return MeanBudget(tokens=self.tokens) if self.shown == "threshold" else EachBudget(tokens=self.tokens)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``probability``, ``value``, ``shown_from`` (mean tokens) and ``selected``."""
        rows = self.probability.valued(tables, self.value, self.min_k, self.tokens)
        return self._rule().run(Tables(ranking=joined(tables["ranking"], rows, [*ADDED])), store)

    def reliability(self, tables: Tables) -> list[dict[str, float]]:
        """Return one row for each bin of estimates that is not empty: low, high, n, estimated, observed."""
        return reliability(tables["ranking"], tables).to_dicts()


def reliability(ranking: pl.DataFrame, tables: Tables, bins: int = 10, deepest: int = 20) -> pl.DataFrame:
    """Compare estimates with outcomes: (low, high, n, estimated, observed), one row for each bin that is not empty.

    The pairs are (question, unit) of the first ``deepest`` ranks of the questions that count. A calibrated model has
    estimated = observed in each bin.
    """
    near = ranking.filter(pl.col("rank") <= deepest).drop_nulls("probability")
    return labels(near, tables).with_columns(
        (pl.col("probability") * bins).floor().clip(0, bins - 1).alias("bin")).group_by("bin").agg(
        (pl.col("bin").first() / bins).alias("low"), ((pl.col("bin").first() + 1) / bins).alias("high"),
        pl.len().alias("n"), pl.col("probability").mean().alias("estimated"), pl.col("held").mean().alias("observed"),
    ).sort("low").drop("bin")
