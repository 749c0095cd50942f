"""Coverage: the estimated probability, for every K, that the first K units hold all evidence.

Logistic regression over ``memlab.learn.coverage.features``, fitted on (question, K) pairs. A running maximum makes it
monotone in K: a longer list never holds less. Fitted and applied on disjoint folds, or applied from a saved fit::

    python -m memlab.learn.coverage file=FIT.json data=locomo data.path=FILE    fits on all, saves FIT.json
    memlab run rank/select=calibrated learn/coverage=loaded learn.coverage.path=FIT.json data=...
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar

import polars as pl
from pydantic import Field, model_validator

from memlab.data.groups import GroupBy
from memlab.learn.coverage.features import features
from memlab.learn.coverage.model import CoverageModel, Depth, apply, fit, load
from memlab.learn.folds import FoldCount, folds
from memlab.learn.labels import EvidenceLevel, smallest_k
from memlab.rank.select import Calibrated, Count
from memlab.stage import LocalPath, name_of, stage
from memlab.store import Store
from memlab.tables import Tables


def with_coverage(ranking: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Add ``coverage`` to a ranking; units beyond the model's depth get the last estimate of their question."""
    joined = ranking.join(estimates, on=["question", "rank"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("coverage").fill_null(pl.col("coverage").max().over("question")))


@stage(sees=("gold",), fits="all")
class CrossFitCoverage:
    """Estimate each question's coverage by a model fitted on the other folds (memlab.learn.folds).

    The estimate depends neither on the label of the question nor on those of questions that share its evidence.
    Questions that do not count in retrieval averages are estimated, not fitted on.
    """

    reads: ClassVar = ("ranking", "units", "evidence", "gold", "questions", "turns", "classes")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    folds: FoldCount = 5  # fewer where the data has fewer groups; all: leave one group out
    by: GroupBy = "auto"  # groups: corpus where a corpus has several questions, else evidence sessions of one text
    seed: int = 0
    depth: Depth = 100  # ranks beyond take the estimate at this one
    l2: Annotated[float, Field(gt=0)] = 1.0  # penalty on standardised weights, beside a loss summed over questions

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``coverage``."""
        ranking = tables["ranking"]
        shape = features(ranking, tables["units"], tables["classes"], self.depth)
        needed = labels(tables, self.level)
        fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], self.folds, self.seed, self.by)
        estimates = []
        for fold in range(int(fold_of["fold"].to_numpy().max()) + 1):
            held_out = fold_of.filter(pl.col("fold") == fold)
            model = fit(shape, needed.join(held_out, on="question", how="anti"), self.level, self.depth, self.l2)
            estimates.append(apply(model, shape.join(held_out, on="question", how="semi")))
        return Tables(ranking=with_coverage(ranking, pl.concat(estimates)))


@stage
class LoadedCoverage:
    """Estimate coverage by a saved fit, for example from another benchmark (``fit``, ``save``)."""

    reads: ClassVar = ("ranking", "units", "classes")
    writes: ClassVar = ("ranking",)

    path: LocalPath

    @model_validator(mode="after")
    def _readable(self) -> LoadedCoverage:
        load(self.path)
        return self

    def identity(self) -> dict[str, Any]:
        """Describe the content of the fit, not its path."""
        return {"is": name_of(type(self)),
                "fit": hashlib.blake2b(self.path.read_bytes(), digest_size=16).hexdigest()}

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``coverage``."""
        model = load(self.path)
        shape = features(tables["ranking"], tables["units"], tables["classes"], model.depth)
        return Tables(ranking=with_coverage(tables["ranking"], apply(model, shape)))


def fit_tables(tables: Tables, level: EvidenceLevel = "session", depth: int = 100, l2: float = 1.0) -> CoverageModel:
    """Fit on all questions of a finished run, to save the fit and apply it to another benchmark."""
    shape = features(tables["ranking"], tables["units"], tables["classes"], depth)
    return fit(shape, labels(tables, level), level, depth, l2)


def labels(tables: Tables, level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, complete) for the questions that count: the smallest K with all evidence, or null."""
    needed = smallest_k(tables["ranking"], tables["units"], tables["evidence"], level)
    return needed.join(tables["gold"].filter("scored"), on="question", how="semi").select("question", "complete")


def reliability(ranking: pl.DataFrame, needed: pl.DataFrame, bins: int = 10,
                ranks: tuple[int, ...] = (1, 3, 5, 10, 20, 40)) -> pl.DataFrame:
    """Compare estimates with outcomes: (low, high, n, estimated, observed), one row for each bin that is not empty.

    ``ranking`` has ``coverage``, ``needed`` is the result of ``labels``; the pairs are (question, K) for K in
    ``ranks``. A calibrated model has estimated = observed in each bin.
    """
    pairs = ranking.filter(pl.col("rank").is_in(ranks)).join(needed, on="question").select(
        "coverage", (pl.col("rank") >= pl.col("complete")).fill_null(False).cast(pl.Float64).alias("held"),
        (pl.col("coverage") * bins).floor().clip(0, bins - 1).alias("bin"))
    return pairs.group_by("bin").agg(
        (pl.col("bin").first() / bins).alias("low"), ((pl.col("bin").first() + 1) / bins).alias("high"),
        pl.len().alias("n"), pl.col("coverage").mean().alias("estimated"), pl.col("held").mean().alias("observed"),
    ).sort("low").drop("bin")


@stage(sees=("gold",), fits="all")
class LearnedK:
    """Select the smallest K whose estimated probability of complete evidence reaches ``target``.

    ``coverage`` is fitted across folds of the same questions, or loaded from a fit on another benchmark.
    If no K up to ``max_k`` reaches the target, ``max_k`` units are shown and marked ``unreachable``.
    """

    reads: ClassVar = CrossFitCoverage.reads
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True

    coverage: CrossFitCoverage | LoadedCoverage
    target: Annotated[float, Field(gt=0, lt=1)] = 0.9  # estimated probability that all evidence is shown; no guarantee
    min_k: Count = 1
    max_k: Count = 40  # shown where no K reaches the target, and marked unreachable

    def variations(self) -> Iterator[Calibrated]:
        """Yield the rule with other targets, for a ranking that has ``coverage``."""
        return self._rule().variations()

    def _rule(self) -> Calibrated:
        return Calibrated(target=self.target, min_k=self.min_k, max_k=self.max_k)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the ranking with ``coverage``, ``selected`` and ``unreachable``."""
        return self._rule().run(tables.updated(self.coverage.run(tables, store)), store)

    def reliability(self, tables: Tables) -> list[dict[str, float]]:
        """Return one row for each bin of estimates that is not empty: low, high, n, estimated, observed."""
        needed = labels(tables, getattr(self.coverage, "level", "session"))
        return reliability(tables["ranking"], needed).to_dicts()
