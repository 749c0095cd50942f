"""Cross-fitting: the turns of each fold, scored by trees that were fitted on the other folds."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.learn.ranker.model import RankModel, Recipe, Scores, apply, fit
from memlab.learn.ranker.signals import Bools, Ints
from memlab.support.errors import MemlabError
from memlab.support.machine import usable_cores

Fits = Sequence[tuple[Bools, RankModel]]
"""Models, and the rows (n,) that each of them scores; each row has one model."""


@dataclasses.dataclass(frozen=True)
class Learnable:
    """Rows of ``features``, best first in each question, with the gold that fits learn from; arrays are (n,).

    label: 1 for evidence. session: number of the row's session. fold: of the question. dataset: number of the row's
    data set. shared (folds, n): whether the session is in a fold's haystacks too (memlab.learn.folds.in_folds).
    """

    frame: pl.DataFrame
    label: NDArray[np.int32]
    session: Ints
    fold: NDArray[np.int32]
    dataset: NDArray[np.int32]
    shared: Bools

    def fit(self, depth: int, recipe: Recipe, *held_out: int, start: RankModel | None = None) -> RankModel:
        """Fit without the questions of these folds."""
        kept = without(self.label, self.fold, self.shared, *held_out) if held_out else None
        return fit(self.frame, self.label, depth, recipe, kept, self.dataset, start)

    def crossfit(self, depth: int, recipe: Recipe, start: RankModel | None = None) -> Fits:
        """Return the rows of each fold, with a model that was fitted on the rows of the other folds.

        One fit is made on each core at a time.
        """
        parts = np.unique(self.fold).tolist()
        with ThreadPoolExecutor(usable_cores()) as pool:  # LightGBM computes outside Python's lock
            models = list(pool.map(lambda part: self.fit(depth, recipe, part, start=start), parts))
        return [(self.fold == part, model) for part, model in zip(parts, models)]


def apply_fits(fits: Fits, frame: pl.DataFrame) -> Scores:
    """Return each row's score by its own model, shape (n,)."""
    scores = np.zeros(frame.height)
    for mine, model in fits:
        scores[mine] = apply(model, frame if mine.all() else frame.filter(mine))  # a saved fit copies no row
    return scores


def without(label: NDArray[np.int32], fold: NDArray[np.int32], shared: Bools, *held_out: int) -> Bools:
    """Return the rows to fit on without some folds, (n,): those of other folds, and no negative that they share."""
    return ~np.isin(fold, held_out) & ((label > 0) | ~shared[list(held_out)].any(axis=0))


def together(parts: Sequence[Learnable]) -> Learnable:
    """Return the rows of data sets as one, questions and data sets numbered anew; raise MemlabError for other lanes."""
    columns = parts[0].frame.columns  # of the same lanes the order may differ
    if any(set(part.frame.columns) != set(columns) for part in parts):
        raise MemlabError("the rankings of these data sets have other lanes", where="learn/ranker",
                          fix="use searches that all of them have")
    offsets = np.cumsum([0, *(int(part.frame["question"].to_numpy().max()) + 1 for part in parts)])
    frame = pl.concat(part.frame.select(columns).with_columns(pl.col("question").cast(pl.Int64) + int(offset))
                      for part, offset in zip(parts, offsets))
    most = max(len(part.shared) for part in parts)
    shared = [np.pad(part.shared, ((0, most - len(part.shared)), (0, 0))) for part in parts]
    label, session, fold = (np.concatenate([getattr(part, name) for part in parts])
                            for name in ("label", "session", "fold"))
    dataset = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.label) for part in parts])
    return Learnable(frame, label, session, fold, dataset, np.hstack(shared))
