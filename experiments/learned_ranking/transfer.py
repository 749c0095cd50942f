"""Fits of one data set applied to another, and joint fits that see four fifths of the tested one, each against `best`.

    python experiments/learned_ranking/transfer.py data=locomo data.path=FILE data=longmemeval_s data.path=FILE \
        data=synthetic

Each word `data=...` opens a data set, as in `memlab train ranker`.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator

import numpy as np
import polars as pl

from memlab.data.dataset import groups
from memlab.evaluate.contrast import Contrast, measure
from memlab.evaluate.retrieval import retrieval
from memlab.evaluate.statistics import holm
from memlab.learn.folds import folds
from memlab.learn.ranker.__main__ import first_stage, split
from memlab.learn.ranker.cross_fit import Fits, Learnable, apply_fits, fit_both, places, together, without
from memlab.learn.ranker.sessions import rescore
from memlab.learn.ranker.stage import LearnedScore, in_haystacks
from memlab.pipeline.tables import Tables

FOLDS = 5
"""Parts of the tested data set; each is scored by a joint fit that has not seen it."""

METRICS = ("turn/ndcg@10", "session/recall_any@1", "session/recall_all@5")


@dataclasses.dataclass(frozen=True)
class World:
    """A data set after the first step of learned fusion.

    fold: of the question of each row; questions of two folds share no evidence. kept (folds, n): the rows that a fit
    without each fold may learn from.
    """

    name: str
    score: LearnedScore
    tables: Tables
    rows: Learnable
    fold: np.ndarray
    kept: np.ndarray

    def score(self, fits: Fits | None) -> pl.DataFrame:
        """Return the metrics of each question by these fits; by weights alone without fits."""
        ranking = self.tables["ranking"]
        if fits is not None:
            scores = apply_fits(fits, self.rows.frame)
            placed = places(fits, self.rows.frame, self.rows.session, scores, self.rows.terms)
            ranking = rescore(ranking, self.rows.frame, scores, self.score.depth, placed)
        tables = self.tables.updated({"ranking": ranking})
        group = groups(tables["questions"], tables["evidence"], tables["turns"], self.score.by)
        scored = tables["gold"].filter("scored")
        return retrieval(tables).join(group, on="question").join(scored, on="question", how="semi")


def world(words: list[str]) -> World:
    """Load a data set and rank it by weights."""
    score, arm, tables = first_stage(words)
    fold_of = folds(tables["questions"], tables["evidence"], tables["turns"], FOLDS, score.recipe.seed, score.by)
    rows = score.learnable(tables)
    fold = rows.frame.select("question").join(fold_of, on="question", how="left", maintain_order="left")[
        "fold"].to_numpy()
    shared = in_haystacks(rows.frame, tables, fold_of)
    kept = np.stack([without(rows.label, fold, shared, held_out) for held_out in range(len(shared))])
    return World(arm.dataset.name, score, tables, rows, fold, kept)


def part(rows: Learnable, kept: np.ndarray) -> Learnable:
    """Return these rows alone."""
    picked = {field.name: getattr(rows, field.name)[kept] for field in dataclasses.fields(rows)
              if field.name not in ("frame", "terms", "shared")}
    return Learnable(frame=rows.frame.filter(kept), terms=rows.terms.only(kept), shared=rows.shared[:, kept], **picked)


def fits_of(tested: World, worlds: list[World]) -> Iterator[tuple[str, Fits]]:
    """Yield what the fits were made on, and the fits for all rows of ``tested``."""
    everything = np.ones(len(tested.fold), np.bool_)
    others = [other for other in worlds if other is not tested]
    for other in others:
        yield other.name, [(everything, fit_both(other.rows, other.score.depth, other.score.fit_recipe))]
    joint: Fits = []
    for fold, kept in enumerate(tested.kept):
        seen = together([*(other.rows for other in others), part(tested.rows, kept)])
        joint.append((tested.fold == fold, fit_both(seen, tested.score.depth, tested.score.fit_recipe)))
    yield "joint", joint
    yield "joint, turns", [(rows, dataclasses.replace(model, sessions=None, behind=None)) for rows, model in joint]


def main(words: list[str]) -> None:
    """Print the metrics of each fit on each data set, and its differences from `best`."""
    worlds = [world(own) for own in split(words)]
    for tested in worlds:
        best = tested.score(None)
        print(f"{tested.name}, best: " + ", ".join(f"{metric} {best[metric].mean():.3f}" for metric in METRICS))
        for name, fits in fits_of(tested, worlds):
            mine = tested.score(fits)
            rows = [measure(Contrast(name, "best", metric), mine, best, alpha=0.05, seed=0) for metric in METRICS]
            for row, p in zip(rows, holm([1.0 if row["p"] is None else row["p"] for row in rows])):
                print(f"  {name}, {row['metric']}: {mine[row['metric']].mean():.3f}, {100 * row['difference']:+.1f} "
                      f"points, {row['wins']} : {row['losses']}, p = {p:.3f} after Holm over {len(rows)}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
