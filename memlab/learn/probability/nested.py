"""Probabilities over a learned ranking, nested: no label of a fold has a way into the estimates of its questions.

A cross-fitted ranker scores the questions of one fold by a fit that has seen all other folds. A model of probabilities
for fold f, fitted on such scores, would learn from rankers that have seen f. Here it learns from rankers that were
fitted without f and without the fold that they score; f itself is scored by the ranker that was fitted without f.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import ClassVar

import numpy as np
import polars as pl
from pydantic import model_validator

from memlab.errors import MemlabError
from memlab.learn.probability.stage import CrossFitProbability
from memlab.learn.ranker.features import NEEDED
from memlab.learn.ranker.model import Scores, apply, fit, without
from memlab.learn.ranker.signals import FUSED
from memlab.learn.ranker.stage import LearnedScore, candidates, in_haystacks, rescore
from memlab.rank.select import need
from memlab.rank.units import ranked
from memlab.stage import stage
from memlab.tables import Tables


@stage(sees=("gold",), fits="all")
class NestedProbability(CrossFitProbability):
    """Estimate as ``CrossFitProbability`` does, for a ranking by ``ranker``, which is refitted without pairs of folds.

    With n folds there are n (n - 1) / 2 more fits of the ranker. The rankings that are learned from have no session
    model, which would take a fit for every three folds; it moves few turns, and the scores stay at their places.
    """

    reads: ClassVar = tuple(dict.fromkeys((*CrossFitProbability.reads, *NEEDED)))

    ranker: LearnedScore  # the stage that made the ranking

    @model_validator(mode="after")
    def _same_folds(self) -> NestedProbability:
        if self.ranker.model is not None:
            raise ValueError("a saved ranker has seen no gold of this data: choose learn/probability=crossfit")
        if (self.ranker.folds, self.ranker.by, self.ranker.recipe.seed) != (self.folds, self.by, self.seed):
            raise ValueError("folds, by and seed differ from those of the ranker")
        return self

    def rankings(self, tables: Tables, fold_of: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
        """Yield each fold, and the ranking of all questions by rankers that have not seen it."""
        shown = tables["ranking"]
        need(shown, FUSED, "choose system=best_learned or rank/score=learned, without a roll-up")
        first = ranked(shown.with_columns(pl.col(FUSED).alias("score")).drop("rank", "selected"))
        frame, label = candidates(tables.updated({"ranking": first}), self.ranker.depth)
        fold = frame.select("question").join(fold_of, on="question", how="left", maintain_order="left")[
            "fold"].to_numpy()
        parts = np.unique(fold).tolist()
        if len(parts) < 3:
            raise MemlabError(f"{len(parts)} folds leave no data without two of them", where="learn/probability=nested",
                              fix="use learn.folds=5 or more, on data with at least three groups of questions")
        shared = in_haystacks(frame, tables, fold_of)
        scores_of: dict[tuple[int, int], Scores] = {}  # (left out, scored): the scores of the rows of ``scored``
        for pair in combinations(parts, 2):
            kept = without(label, fold, shared, *pair)
            model = fit(frame, label, self.ranker.depth, self.ranker.recipe, kept=kept)
            for left_out, scored in (pair, pair[::-1]):
                scores_of[left_out, scored] = apply(model, frame.filter(fold == scored))
        for part in parts:
            scores = np.zeros(frame.height)
            for other in parts:
                if other != part:
                    scores[fold == other] = scores_of[part, other]
            own = fold_of.filter(pl.col("fold") == part)
            nested = rescore(first, frame, scores, self.ranker.depth).join(own, on="question", how="anti")
            yield part, pl.concat([shown.join(own, on="question", how="semi"), nested.select(shown.columns)])
