"""The weight between vectors and words in a first ranking, chosen on the gold of other folds.

Lysenstoen, "Training-Free Lexical-Dense Fusion for Conversational-Memory Retrieval" (arXiv 2606.04194, 2026;
github.com/Chrislysen/opsem): with w in steps of 0.05, score(session) = w z(BM25 of the session) + (1 - w) z(largest
cosine of its turns); w is the smallest of those with the largest hit@1 in all conversations but the question's own.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.learn.folds import CrossFitted, FoldCount, scored_evidence
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS, Notes, Tables, empty
from memlab.stages.rank.fusion import fits, normalise
from memlab.stages.rank.score import lanes_of
from memlab.stages.rank.units import Level, rank_units
from memlab.store import Store
from memlab.support.errors import MemlabError

LANES = ("lexical", "dense")
"""The search that has the weight, and the one that has the rest."""


@stage(sees=("gold",), fits="all")
class CrossFitWeight(CrossFitted):
    """Rank units by w z(lexical) + (1 - w) z(dense); a question's w is the best one on the other folds.

    The z-scores are those of ``memlab.stages.rank.fusion`` over the units of one question. The best w has the most
    questions
    whose first unit is of an evidence session; among equals the smallest. Questions that do not count in retrieval
    averages are ranked, and choose nothing. The table ``notes`` says which weights were chosen, and for how many
    questions each.
    """

    reads: ClassVar = ("hits", "queries", "memories", "sessions", "turns", "questions", "evidence", "gold")
    writes: ClassVar = ("units", "ranking")

    level: Level = "session"  # what is ranked; a session has the best score of its turns in each lane
    step: Annotated[float, Field(gt=0, le=1)] = 0.05  # between the weights that are tried, from 0 to 1
    folds: FoldCount = "all"  # all: leave one group out
    rrf_k: Annotated[int, Field(ge=1)] = 60  # where a question has several queries, whose ranks are fused

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``units``, ``ranking`` and notes; raise MemlabError unless words and vectors have one lane each."""
        units, signals = lanes_of(tables, store, self.level, self.rrf_k)
        if not signals.height:
            return Tables(units=units, ranking=empty("ranking"))
        words, vectors = (_lane(name, signals.columns[2:]) for name in LANES)
        scaled = signals.with_columns(normalise(words, "zscore").alias("words"),
                                      normalise(vectors, "zscore").alias("vectors"))
        chosen = self._choose(tables, units, scaled)
        weight = pl.col("weight")
        scored = scaled.join(chosen, on="question", how="left", maintain_order="left").with_columns(
            (weight * pl.col("words") + (1 - weight) * pl.col("vectors")).alias("score"))
        notes = Notes()
        for (value,), part in sorted(chosen.partition_by("weight", as_dict=True).items()):
            notes.add(part.height, chosen.height, f"questions ranked with a weight of {value:.2f} for words")
        return Tables(units=units, ranking=rank_units(scored.drop("words", "vectors", "weight")), notes=notes.table())

    def _choose(self, tables: Tables, units: pl.DataFrame, scaled: pl.DataFrame) -> pl.DataFrame:
        """Return (question, weight): for each question the best weight on the other folds."""
        weights = np.append(np.arange(0, 1, self.step), 1.0).round(DIGITS)
        fold_of = self.fold_of(tables)
        evidence = scored_evidence(tables).select("question", "session").unique()
        known = fold_of.join(evidence, on="question", how="semi")
        hits = first_hits(scaled, units, evidence, known["question"], weights)
        fold = known["fold"].to_numpy()
        best = {part: _best(weights, hits[fold != part]) for part in fold_of["fold"].unique()}
        return fold_of.select("question", pl.col("fold").replace_strict(best, return_dtype=pl.Float64).alias("weight"))


def first_hits(scaled: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame, questions: pl.Series,
               weights: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return whether the first unit is of an evidence session, by question and weight: (questions, weights).

    ``scaled`` has question, unit, words and vectors; ``evidence`` question and session. Equal scores are ordered by
    unit, as in a ranking; a question without units hits nothing.
    """
    rows = scaled.join(units.select("unit", "session"), on="unit").join(
        evidence.with_columns(pl.lit(True).alias("held")), on=["question", "session"], how="left").sort(
        "question", "unit")
    hits = np.zeros((len(questions), len(weights)), bool)
    for column, weight in enumerate(weights):
        score = (weight * pl.col("words") + (1 - weight) * pl.col("vectors")).round(DIGITS)
        first = rows.group_by("question", maintain_order=True).agg(pl.col("held").gather(score.arg_max()).first())
        held = questions.to_frame("question").join(first, on="question", how="left", maintain_order="left")["held"]
        hits[:, column] = held.fill_null(False).to_numpy()
    return hits


def _best(weights: NDArray[np.float64], hits: NDArray[np.bool_]) -> float:
    """Return the weight with the most hits (questions, weights), the smallest among equals."""
    if not len(hits):
        raise MemlabError("no question of the other folds has evidence", where="rank/score, weight",
                          fix="use more data, or give a weight: rank/score=zscore 'rank.score.weights={lexical: 0.5}'")
    return float(weights[hits.sum(axis=0).argmax()])


def _lane(search: str, lanes: list[str]) -> str:
    """Return the one lane of a search."""
    fitting = [lane for lane in lanes if fits(search, lane)]
    if len(fitting) != 1 or len(lanes) != len(LANES):
        raise MemlabError(f"the weight lies between one lane of words and one of vectors; the lanes are "
                          f"{', '.join(lanes)}", where="rank/score",
                          fix="choose one kind of memories: search.lexical.kinds=[session] search.dense.kinds=[turn]")
    return fitting[0]
