"""How many units of a ranking are shown: a constant, by class of question, at the largest gap, within a budget."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.errors import MemlabError
from memlab.question_types import FALLBACK, first_of
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

Count = Annotated[int, Field(ge=1)]


def cut(ranking: pl.DataFrame, k: pl.DataFrame) -> Tables:
    """Select the first k units of each question, k given as a frame (question, k); none where k is missing."""
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

    k: Count = 10  # K of most published systems

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        ranking = tables["ranking"]
        return Tables(ranking=ranking.with_columns((pl.col("rank") <= self.k).alias("selected")))


@stage
class ByType:
    """Select k units by the class of the question, as query/classify told it.

    Counting 40 and factual 10 are RAG Memory Provider v1's plan; it names no other class, so the others take its
    default of 20, or 10 where one place should hold the answer. A question over several sessions takes the k of
    ``counting`` (``memlab.question_types``), one of a class that has no k here, or of none, ``other``.
    """

    reads: ClassVar = ("ranking", "classes")
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # its K differs by question, so it is compared with a token-matched twin

    counting: Count = 40  # published: answers gathered from many sessions; multi_session takes it too
    factual: Count = 10  # published: one place holds the answer
    temporal: Count = 20  # two or more events to compare
    update: Count = 10  # the newest of a few statements
    preference: Count = 20  # traces of a taste lie in several places
    assistant: Count = 10  # one earlier answer
    other: Count = 20  # published default, for the classes of other classifiers: general, conceptual, procedural

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected``."""
        own = {"counting": self.counting, "factual": self.factual, "temporal": self.temporal, "update": self.update,
               "preference": self.preference, "assistant": self.assistant}
        kinds = first_of(tables["classes"])
        asked = tables["ranking"].select(pl.col("question").unique())
        k = [own.get(FALLBACK.get(kind, kind), self.other) for kind in (kinds.get(q, "") for q in asked["question"])]
        return cut(tables["ranking"], asked.with_columns(pl.Series("k", k, pl.Int32)))


@stage
class Gap:
    """Cut at the largest drop between consecutive scores, and show ``buffer`` units more (Adaptive-k).

    Taguchi, Maekawa, Bhutani: Efficient Context Selection for Long-Context QA: No Tuning, No Iteration, Just
    Adaptive-k, EMNLP 2025. K = min(i + buffer, max_k), with i the first rank in [min_k, max_k] that maximises
    score(i) - score(i + 1). The paper bars cuts in the last tenth of all passages, ``max_k`` bars them beyond a
    rank, since pools here hold hundreds.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # its K differs by question, so it is compared with a token-matched twin

    min_k: Count = 1  # the drop after rank min_k is the first that counts
    max_k: Count = 40  # never more; the paper bars cuts in the last tenth of all passages instead
    buffer: Annotated[int, Field(ge=0)] = 5  # units shown beyond the drop; the paper's value

    @model_validator(mode="after")
    def _range(self) -> Gap:
        if self.min_k > self.max_k:
            raise ValueError(f"min_k {self.min_k} is above max_k {self.max_k}")
        return self

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
            pl.lit(self.max_k, pl.Int32).alias("k"))  # no cut is possible in the range: all of few units
        return cut(ranking, pl.concat([k, short]))


@stage
class Budget:
    """Select units in order of rank while they fit in a number of tokens; the first is always shown.

    Stops at the first unit that does not fit, so that what is shown is a head of the ranking. ``twin`` asks for the
    token-matched twin that arms with a K by question are compared with; where all arms have one budget it is not
    the question.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    tokens: Count = 1000  # counted as all arms count them; the first unit is shown even if it is larger
    twin: bool = True  # compare with one K for all of the same mean tokens; false where every arm has this budget

    @property
    def adaptive(self) -> bool:
        """Whether the arm is compared with its token-matched twin."""
        return self.twin

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

    The probability is the ranking's column ``coverage`` (learn/coverage). Where no K up to ``max_k`` reaches the
    target, ``max_k`` units are shown and the column ``unreachable`` is 1 instead of 0. The estimate is as good as
    its reliability curve; nothing is guaranteed.
    """

    reads: ClassVar = ("ranking",)
    writes: ClassVar = ("ranking",)

    target: Annotated[float, Field(gt=0, lt=1)] = 0.9
    min_k: Count = 1
    max_k: Count = 40

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
