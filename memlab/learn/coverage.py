"""Coverage: the estimated probability, for every K, that the first K units hold all evidence.

Logistic regression over features of the first K units, from the shape of the ranking alone, fitted on (question, K)
pairs. A running maximum makes it monotone in K: a longer list never holds less. Fitted and applied on disjoint folds,
or applied from a saved fit::

    memlab train coverage file=FIT.json data=locomo data.path=FILE    fits on all, saves FIT.json
    memlab run rank/select=calibrated learn/coverage=loaded learn.coverage.path=FIT.json data=...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.learn import fits
from memlab.learn.fits import Depth, LogisticFit, Matrix, SavedFit, evidence_keys, fit_regression, stack
from memlab.learn.folds import CrossFitted, EvidenceLevel, scored_evidence, smallest_k
from memlab.pipeline.question_types import FALLBACK, first_of
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables
from memlab.stages.query.classify import CLASSES
from memlab.stages.rank.select import Calibrated, Count
from memlab.stages.rank.units import signals_of
from memlab.store import Store
from memlab.support.errors import MemlabError

FEATURES: tuple[str, ...] = (
    "log_k",             # log of K
    "log_units",         # log of the number of units ranked (at most depth)
    "score",             # z-score of unit K among the first depth
    "below_top",         # (top - score of K) / range
    "gap",               # drop after unit K / range
    "top_gap",           # drop after unit 1 / range
    "mass",              # softmax mass of the first K z-scores
    "entropy",           # entropy of that softmax / log(units): 1 is a flat list
    "sessions",          # distinct sessions among the first K / K
    "agreement",         # mean over lanes of |first K of both| / K
    "agreement_depth",   # agreement x log K
    *(f"is_{name}" for name in CLASSES),
    *(f"is_{name}_depth" for name in CLASSES),  # x log K: a count needs more units
)


def features(ranking: pl.DataFrame, units: pl.DataFrame, classes: pl.DataFrame, depth: int) -> pl.DataFrame:
    """Return (question, rank, one column per feature) for each K = rank up to ``depth`` of each ranked question.

    A question over several sessions has the flag of counting questions (``memlab.pipeline.question_types``); a question
    of a
    class without a flag has none.
    """
    rows = ranking.filter(pl.col("rank") <= depth).sort("question", "rank")
    questions = rows["question"].unique(maintain_order=True)
    q = rows["question"].rank("dense").to_numpy().astype(np.int64) - 1  # row of the matrices below
    r = rows["rank"].to_numpy().astype(np.int64) - 1                   # column
    shape = (len(questions), depth)
    ranked = np.zeros(shape, bool)
    ranked[q, r] = True
    n = np.maximum(ranked.sum(axis=1, keepdims=True), 1)               # (Q, 1)
    k = np.arange(1, depth + 1)[None, :]                               # (1, K)
    log_k = np.broadcast_to(np.log(k), shape)

    score = np.zeros(shape)
    score[q, r] = rows["score"].to_numpy()
    mean = score.sum(axis=1, keepdims=True) / n
    deviation = np.sqrt((np.where(ranked, score - mean, 0) ** 2).sum(axis=1, keepdims=True) / n)
    z = np.where(ranked, (score - mean) / np.where(deviation > 0, deviation, 1), 0)
    last = np.take_along_axis(score, n - 1, axis=1)
    spread = np.where(score[:, :1] > last, score[:, :1] - last, 1)
    following = np.concatenate([score[:, 1:], score[:, -1:]], axis=1)
    gap = np.where(k < n, score - following, 0) / spread
    share = np.where(ranked, np.exp(z), 0)
    share /= share.sum(axis=1, keepdims=True)
    entropy = -(share * np.log(np.where(share > 0, share, 1))).sum(axis=1, keepdims=True) / np.log(np.maximum(n, 2))

    session = rows.join(units.select("unit", "session"), on="unit", how="left", maintain_order="left")
    new = np.zeros(shape)
    new[q, r] = session.select(pl.struct("question", "session").is_first_distinct()).to_series().to_numpy()
    agreement = _agreement(rows, q, shape)
    columns: dict[str, Matrix] = {
        "log_k": log_k, "log_units": np.log(n), "score": z, "below_top": (score[:, :1] - score) / spread,
        "gap": gap, "top_gap": gap[:, :1], "mass": share.cumsum(axis=1), "entropy": entropy,
        "sessions": new.cumsum(axis=1) / k, "agreement": agreement, "agreement_depth": agreement * log_k,
    }
    kinds = {question: FALLBACK.get(kind, kind) for question, kind in first_of(classes).items()}
    for name in CLASSES:
        flag = np.array([[float(kinds.get(question) == name)] for question in questions])
        columns[f"is_{name}"], columns[f"is_{name}_depth"] = flag, flag * log_k
    return rows.select("question", "rank").with_columns(
        pl.Series(name, np.broadcast_to(columns[name], shape)[q, r]) for name in FEATURES)


def _agreement(rows: pl.DataFrame, q: NDArray[np.int64], shape: tuple[int, int]) -> Matrix:
    """Mean over lanes of the share of the first K units that the lane's own order has among its first K as well."""
    lanes = signals_of(rows)
    total = np.zeros(shape)
    for lane in lanes:
        own = rows.select(pl.col(lane).rank("ordinal", descending=True).over("question").alias("own"), "rank")
        k = own.filter(pl.col("own").is_not_null()).select(pl.max_horizontal("own", "rank"))
        common = np.zeros(shape)
        np.add.at(common, (q[own["own"].is_not_null().to_numpy()], k.to_series().to_numpy().astype(np.int64) - 1), 1)
        total += common.cumsum(axis=1)
    return total / (max(len(lanes), 1) * np.arange(1, shape[1] + 1))


@stage
class CoverageModel(LogisticFit):
    """A fit of P(complete | K); ``level`` is what counts as complete."""

    FORMAT: ClassVar = "memlab-coverage-1"
    FEATURES: ClassVar = FEATURES

    level: EvidenceLevel


def fit(shape: pl.DataFrame, needed: pl.DataFrame, level: EvidenceLevel, depth: int,
        l2: float = 1.0, learnt: Iterable[str] = ()) -> CoverageModel:
    """Fit on the rows of ``features`` whose question is in ``needed`` (question, complete).

    Each question has a total weight of 1, each pair (question, K) a weight in proportion to 1 / K: every doubling of K
    counts the same, since the choice is among small K and large ones are many.
    """
    rows = shape.join(needed.select("question", "complete"), on="question").sort("rank", *FEATURES, "complete")
    if not rows.height:
        raise MemlabError("no ranked question has evidence to fit on", where="learn/coverage")
    complete = (rows["rank"] >= rows["complete"].fill_null(depth + 1)).to_numpy().astype(float)
    weight = rows.select((1 / pl.col("rank")) / (1 / pl.col("rank")).sum().over("question")).to_series().to_numpy()
    regression = fit_regression(rows.select(FEATURES).to_numpy(), complete, l2, weight)
    return CoverageModel.of(regression, depth, learnt, level=level)


def apply(model: CoverageModel, shape: pl.DataFrame) -> pl.DataFrame:
    """Return (question, rank, coverage) for the rows of ``features``; coverage never falls with rank."""
    rows = shape.select("question", "rank", pl.Series("coverage", model.estimates(shape.select(FEATURES).to_numpy())))
    return rows.sort("question", "rank").with_columns(pl.col("coverage").cum_max().over("question"))


def load(path: Path) -> CoverageModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    return fits.load(path, CoverageModel, "a coverage fit", "fit one with memlab train coverage")


def with_coverage(ranking: pl.DataFrame, estimates: pl.DataFrame) -> pl.DataFrame:
    """Add ``coverage`` to a ranking; units beyond the model's depth get the last estimate of their question."""
    joined = ranking.join(estimates, on=["question", "rank"], how="left", maintain_order="left")
    return joined.with_columns(pl.col("coverage").fill_null(pl.col("coverage").max().over("question")))


@stage(sees=("gold",), fits="all")
class CrossFitCoverage(CrossFitted):
    """Estimate each question's coverage by a model fitted on the other folds (memlab.learn.folds).

    The estimate depends neither on the label of the question nor on those of questions that share its evidence.
    Questions that do not count in retrieval averages are estimated, not fitted on.
    """

    reads: ClassVar = ("ranking", "units", "evidence", "gold", "questions", "turns", "classes")
    writes: ClassVar = ("ranking",)

    level: EvidenceLevel = "session"
    depth: Depth = 100  # ranks beyond take the estimate at this one
    l2: Annotated[float, Field(gt=0)] = 1.0  # penalty on standardised weights, beside a loss summed over questions

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``coverage``."""
        ranking = tables["ranking"]
        shape = features(ranking, tables["units"], tables["classes"], self.depth)
        needed = labels(tables, self.level)
        fold_of = self.fold_of(tables)
        estimates = []
        for fold in range(int(fold_of["fold"].to_numpy().max()) + 1):
            held_out = fold_of.filter(pl.col("fold") == fold)
            model = fit(shape, needed.join(held_out, on="question", how="anti"), self.level, self.depth, self.l2)
            estimates.append(apply(model, shape.join(held_out, on="question", how="semi")))
        return Tables(ranking=with_coverage(ranking, pl.concat(estimates)))


@stage
class LoadedCoverage(SavedFit):
    """Estimate coverage by a saved fit, for example from another benchmark."""

    reads: ClassVar = ("ranking", "units", "classes")
    writes: ClassVar = ("ranking",)

    def fits(self) -> list[CoverageModel]:
        """Return the fit; raise MemlabError if the file is none."""
        return [load(self.path)]

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``coverage``."""
        (model,) = self.fits()
        shape = features(tables["ranking"], tables["units"], tables["classes"], model.depth)
        return Tables(ranking=with_coverage(tables["ranking"], apply(model, shape)))


def labels(tables: Tables, level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, complete) for the questions that count: the smallest K with all evidence, or null."""
    needed = smallest_k(tables["ranking"], tables["units"], scored_evidence(tables), level)
    return needed.select("question", "complete")


def reliability(ranking: pl.DataFrame, needed: pl.DataFrame, bins: int = 10,
                ranks: tuple[int, ...] = (1, 3, 5, 10, 20, 40)) -> pl.DataFrame:
    """Compare estimates with outcomes for pairs (question, K) with K in ``ranks``; ``needed``: ``labels``."""
    return fits.reliability(ranking.filter(pl.col("rank").is_in(ranks)).join(needed, on="question").select(
        pl.col("coverage").alias("estimate"),
        (pl.col("rank") >= pl.col("complete")).fill_null(False).cast(pl.Float64).alias("outcome")), bins)


@stage(sees=("gold",), fits="all")
class LearnedK:
    """Select the smallest K whose estimated probability of complete evidence reaches ``target``.

    ``coverage`` is fitted across folds of the same questions, or loaded from a fit on another benchmark.
    If no K up to ``max_k`` reaches the target, ``max_k`` units are shown and marked ``unreachable``.
    """

    reads: ClassVar = CrossFitCoverage.reads
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True
    training: ClassVar = ("coverage file=FIT.json", "learn/coverage=loaded learn.coverage.path=FIT.json")

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


def fit_tables(*parts: Tables, depth: int = 100, l2: float = 1.0) -> CoverageModel:
    """Fit on all questions of finished runs, by turns where these rank turns, to apply the fit to another benchmark."""
    level: EvidenceLevel = "turn" if any(tables["units"]["level"].eq("turn").any() for tables in parts) else "session"
    shape = stack([features(tables["ranking"], tables["units"], tables["classes"], depth) for tables in parts])
    needed = stack([labels(tables, level) for tables in parts])
    learnt = [key for tables in parts for key in evidence_keys(tables)["key"]]
    return fit(shape, needed, level, depth, l2, learnt)


def main(argv: Sequence[str] | None = None) -> int:
    """Fit on a configured run, save the fit, and return the exit status."""
    from memlab.learn.recipe import fit_command

    return fit_command(argv, fit_tables, __doc__ or "")
