"""Selection: the number of units that are shown, constant, by class of question, within a budget, or by value.

A selection whose ``by_tokens`` is False does not look at the column ``tokens``, so that a live memory need not fill it.
What is made of it says so again where it has a ``run`` of its own.

Selection by the value of each unit: one threshold for all questions, or the best units within each one's budget.

Units inside the ranking may be skipped. A learned stage adds the columns that the rules read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Annotated, ClassVar, Self

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from memlab.pipeline.question_types import FALLBACK, first_of
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.store import Store
from memlab.support.errors import MemlabError

Count = Annotated[int, Field(ge=1)]

POINTS = 40
"""Settings of a rule's knob (``variations``), from which its recall-token curve is drawn."""


def cut(ranking: pl.DataFrame, k: pl.DataFrame) -> Tables:
    """Select the first k units of each question, from a frame (question, k); none if k is missing."""
    rows = ranking.join(k.select("question", pl.col("k").alias("\0k")), on="question", how="left",
                        maintain_order="left")
    chosen = (pl.col("rank") <= pl.col("\0k")).fill_null(False).alias("selected")
    return Tables(ranking=rows.with_columns(chosen).drop("\0k"))


def need(ranking: pl.DataFrame, column: str, fix: str) -> None:
    """Raise MemlabError if the ranking lacks a column that an earlier slot adds."""
    if column not in ranking.columns and ranking.height:
        raise MemlabError(f"the ranking has no column '{column}'", where="rank/select", fix=fix)


@stage
class Fixed:
    """Select the first k units of every question."""

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)
    by_tokens: ClassVar = False

    k: Count = 10  # K of most published systems

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        return Tables(ranking=ranking.with_columns((pl.col("rank") <= self.k).alias("selected")))


@stage
class ByType:
    """Select k units by the class of the question (query/classify).

    Counting 40 and factual 10 are RAG Memory Provider v1's plan; the other classes have its default of 20, or 10 if one
    place should hold the answer. ``multi_session`` takes the k of ``counting``
    (``memlab.pipeline.question_types.FALLBACK``).
    """

    reads: ClassVar = ("ranking", "classes")
    writes: ClassVar = ("ranking",)
    by_tokens: ClassVar = False
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched baseline

    counting: Count = 40  # published: answers from many sessions
    factual: Count = 10  # published: one place holds the answer
    temporal: Count = 20  # two or more events are compared
    update: Count = 10  # the newest of a few statements
    preference: Count = 20  # signs of a taste are in several places
    assistant: Count = 10  # one earlier answer
    other: Count = 20  # published default, for all other classes and for none

    def variations(self) -> Iterator[ByType]:
        """Yield the rule with all its K multiplied by the same factor, from 1/10 to 4."""
        for factor in np.geomspace(0.1, 4, POINTS):
            yield ByType(**{f.name: max(1, round(factor * getattr(self, f.name))) for f in fields(self)})

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        classes = first_of(tables["classes"])
        questions = tables["ranking"].select(pl.col("question").unique())
        kinds = (classes.get(question, "other") for question in questions["question"])
        k = [getattr(self, FALLBACK.get(kind, kind), self.other) for kind in kinds]
        return cut(tables["ranking"], questions.with_columns(pl.Series("k", k, pl.Int32)))


@stage
class Gap:
    """Cut at the largest drop between consecutive scores, and show ``buffer`` more units (Adaptive-k).

    Taguchi, Maekawa, Bhutani: Efficient Context Selection for Long-Context QA: No Tuning, No Iteration, Just
    Adaptive-k, EMNLP 2025. K = min(i + buffer, max_k), with i the first rank in [min_k, max_k] that maximises
    score(i) - score(i + 1). The paper excludes cuts in the last tenth of all passages instead of beyond ``max_k``.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)
    by_tokens: ClassVar = False
    adaptive: ClassVar = True  # K differs by question: compared with a token-matched baseline

    min_k: Count = 1
    max_k: Count = 40  # never more: rankings here have hundreds of units
    buffer: Annotated[int, Field(ge=0)] = 5  # the paper's value

    @model_validator(mode="after")
    def _range(self) -> Gap:
        if self.min_k > self.max_k:
            raise ValueError(f"min_k {self.min_k} is above max_k {self.max_k}")
        return self

    def variations(self) -> Iterator[Gap]:
        """Yield the rule with a ``buffer`` from 0 to ``max_k``."""
        for buffer in range(self.max_k + 1):
            yield replace(self, buffer=buffer)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"].sort("question", "rank")
        drop = (pl.col("score") - pl.col("score").shift(-1).over("question")).round(6)
        k = (
            ranking.with_columns(drop.alias("drop"))
            .filter(pl.col("rank").is_between(self.min_k, self.max_k), pl.col("drop").is_not_null())
            .group_by("question", maintain_order=True)
            .agg(pl.col("rank").get(pl.col("drop").arg_max()).alias("k"))
            .with_columns((pl.col("k") + self.buffer).clip(upper_bound=self.max_k))
        )
        short = ranking.select(pl.col("question").unique()).join(k, on="question", how="anti").with_columns(
            pl.lit(self.max_k, pl.Int32).alias("k"))  # too few units for a cut: all are shown
        return cut(ranking, pl.concat([k, short]))


@stage
class Budget:
    """Select units in order of rank while they fit in a number of tokens; the first is always shown.

    It stops at the first unit that does not fit, so that a head of the ranking is shown.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    tokens: Count = 1000  # by the pipeline's token counter
    twin: bool = True  # compare with a token-matched twin; false if all arms have this budget

    @property
    def adaptive(self) -> bool:
        """Whether the arm is compared with its token-matched baseline."""
        return self.twin

    def variations(self) -> Iterator[Budget]:
        """Yield the rule with budgets from 1/20 to four times this one."""
        for factor in np.geomspace(0.05, 4, POINTS):
            yield replace(self, tokens=max(1, round(factor * self.tokens)))

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"].sort("question", "rank")
        need(ranking, "tokens", "run read/measure before the selection")
        if not ranking.height:
            return Tables(ranking=ranking)
        spent = pl.col("tokens").cum_sum().over("question")
        fits = ((spent <= self.tokens) | (pl.col("rank") == 1)).fill_null(False)  # not measured that deep
        return Tables(ranking=ranking.with_columns(fits.alias("selected")))


@stage
class Calibrated:
    """Select the smallest K whose estimated probability of complete evidence reaches ``target``.

    The probability is the ranking's column ``coverage`` (learn/coverage), as good as its reliability curve. If no K up
    to ``max_k`` reaches the target, ``max_k`` units are shown and the column ``unreachable`` is 1 instead of 0.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    target: Annotated[float, Field(gt=0, lt=1)] = 0.9
    min_k: Count = 1
    max_k: Count = 40

    def variations(self) -> Iterator[Calibrated]:
        """Yield the rule with targets from .002 to .998, evenly spaced in log-odds."""
        for odds in np.exp(np.linspace(-6.2, 6.2, POINTS)):
            yield replace(self, target=float(odds / (1 + odds)))

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected`` and ``unreachable``."""
        ranking = tables["ranking"]
        need(ranking, "coverage", "choose rank/select=calibrated with learn/coverage=crossfit or loaded")
        if not ranking.height:
            return Tables(ranking=ranking)
        reached = ranking.filter(pl.col("coverage") >= self.target, pl.col("rank") <= self.max_k)
        k = ranking.select(pl.col("question").unique()).join(
            reached.group_by("question").agg(pl.col("rank").min().clip(lower_bound=self.min_k).alias("k")),
            on="question", how="left")
        missed = k.select("question", pl.col("k").is_null().cast(pl.Float64).alias("unreachable"))
        chosen = cut(ranking, k.with_columns(pl.col("k").fill_null(self.max_k)))["ranking"]
        return Tables(ranking=chosen.join(missed, on="question", how="left", maintain_order="left"))


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

    tokens: Count = 500  # mean over questions, or of each, by the pipeline's token counter

    def variations(self) -> Iterator[Self]:
        """Yield the rule at each of ``BUDGETS``."""
        return (replace(self, tokens=tokens) for tokens in BUDGETS)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        need(ranking, "shown_from", FIX)
        if not ranking.height:
            return Tables(ranking=ranking)
        return Tables(ranking=ranking.with_columns(
            (pl.col("shown_from") <= self.tokens).fill_null(False).alias("selected")))


@stage
class EachBudget(MeanBudget):
    """Select units in order of ``value`` while they fit into ``tokens`` per question; the first is always shown.

    A unit that does not fit is skipped; equal values go by rank.
    """

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
