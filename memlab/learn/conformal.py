"""Conformal risk control of "not all evidence is shown", with groups of questions as the exchangeable units.

Angelopoulos, Bates, Fisch, Lei, Schuster: Conformal Risk Control, ICLR 2024; for the contexts of RAG, arXiv 2511.17908.
The loss of a question is 1 where not all its evidence is shown, and the loss of a group is the mean of its questions.
With n groups of mean loss R(t) at knob t, the smallest t with

    (n R(t) + 1) / (n + 1) <= alpha

keeps the expected loss of one further group at or below alpha, whatever its distribution, if groups are exchangeable
and the loss falls with t. Questions of one conversation are not exchangeable with those of another; conversations are.
With n groups no alpha below 1 / (n + 1) can be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.data.dataset import GroupBy, groups
from memlab.learn.folds import EvidenceLevel, scored_evidence, smallest_k
from memlab.rank.adaptive_k import with_share
from memlab.rank.select import POINTS, Count, cut
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import DIGITS, Tables

Alpha = Annotated[float, Field(gt=0, lt=1)]
Knob = Literal["rank", "mass"]
Losses = NDArray[np.float64]


def smallest_knob(critical: Losses, group: NDArray[np.int64], alpha: float) -> float:
    """Return the smallest knob that controls the risk at ``alpha``, or infinity if none does.

    ``critical`` (questions,) is the knob from which a question has no loss, infinite if none; ``group`` its group.

    >>> groups = np.array([0, 1, 2, 3])
    >>> smallest_knob(np.array([1.0, 2.0, 5.0, 9.0]), groups, alpha=0.4)  # (4 x 1/4 + 1) / 5 at 5
    5.0
    """
    _, of = np.unique(group, return_inverse=True)
    n = int(of.max()) + 1 if len(of) else 0
    weight = 1 / np.bincount(of, minlength=n)[of] if n else np.array([])
    order = np.argsort(critical, kind="stable")
    covered = np.cumsum(weight[order])  # n (1 - R) at each critical value, of equal ones at the last
    kept = np.flatnonzero((n - covered + 1) / (n + 1) <= alpha + 1e-12)
    return float(critical[order][kept[0]]) if len(kept) else float("inf")


@stage(sees=("gold",), fits="all")
class ConformalSelect:
    """Select the head of the ranking so that the risk of incomplete evidence is at most ``alpha``.

    The knob is K (``of=rank``), or the share of the softmax of scores that is shown (``of=mass``), by which K differs
    between questions. Each group takes the knob that is chosen on all other groups. Where no knob up to ``max_k`` units
    controls the risk, ``max_k`` units are shown and the column ``unreachable`` is 1 instead of 0.
    """

    reads: ClassVar = ("ranking", "units", "evidence", "gold", "questions", "turns")
    writes: ClassVar = ("ranking",)
    adaptive: ClassVar = True  # K differs by group or question: compared with a token-matched baseline

    alpha: Alpha = 0.2
    of: Knob = "rank"
    level: EvidenceLevel = "turn"  # the evidence that must be complete
    by: GroupBy = "auto"  # groups: corpus where a corpus has several questions, else evidence sessions of one text
    temperature: Annotated[float, Field(gt=0)] = 1.0  # of the softmax, for of=mass
    max_k: Count = 200

    def variations(self) -> Iterator[ConformalSelect]:
        """Yield the rule with alpha from .02 to .98, evenly spaced."""
        for alpha in np.linspace(0.98, 0.02, POINTS):
            yield replace(self, alpha=float(alpha))

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking with ``selected`` and ``unreachable``."""
        ranking = tables["ranking"].drop("unreachable", strict=False)
        if not ranking.height:
            return Tables(ranking=ranking)
        rows = self._knobs(ranking)
        needed = smallest_k(rows, tables["units"], scored_evidence(tables), self.level)
        known = needed.select("question", rank="complete").join(
            rows, on=["question", "rank"], how="left").select("question", pl.col("knob").fill_null(float("inf")))
        of_question = groups(tables["questions"], tables["evidence"], tables["turns"], self.by)
        calibration = known.join(of_question, on="question").sort("group", "knob")
        critical, group = calibration["knob"].to_numpy(), calibration["group"].to_numpy()
        chosen = {g: smallest_knob(critical[group != g], group[group != g], self.alpha)
                  for g in of_question["group"].unique()}
        limits = of_question.select("question", pl.col("group").replace_strict(
            chosen, return_dtype=pl.Float64).alias("limit"))
        k = rows.join(limits, on="question").group_by("question").agg(
            (pl.col("knob") <= pl.col("limit")).sum().cast(pl.Int32).alias("k"))
        missed = limits.select("question", pl.col("limit").is_infinite().cast(pl.Float64).alias("unreachable"))
        return Tables(ranking=cut(ranking, k)["ranking"].join(missed, on="question", how="left",
                                                              maintain_order="left"))

    def _knobs(self, ranking: pl.DataFrame) -> pl.DataFrame:
        """Return the first ``max_k`` units with ``knob``, which rises with rank: a unit is shown from this knob on."""
        near = ranking.filter(pl.col("rank") <= self.max_k).sort("question", "rank")
        if self.of == "rank":
            return near.with_columns(pl.col("rank").cast(pl.Float64).alias("knob"))
        return with_share(near, "score", self.temperature, self.max_k).with_columns(
            (pl.col("share").cum_sum() - pl.col("share")).over("question").round(DIGITS).alias("knob"))
