"""Nested cross-fitting: session models trained on out-of-fold turn scores.

For a held-out fold, the turns of each other fold are scored by trees that were fitted without both, so that no label of
the held-out fold reaches its session model. The model of the sessions behind the first learns from the same scores.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.learn.ranker.model import RankModel, Recipe, Scores, apply, fit
from memlab.learn.ranker.sessions import KEY, behind_table, fit_sessions, session_places, session_table
from memlab.learn.ranker.signals import Bools, Ints
from memlab.learn.ranker.words import Terms, join_terms
from memlab.support.errors import MemlabError
from memlab.support.machine import usable_cores

Fits = Sequence[tuple[Bools, RankModel]]
"""Models, and the rows (n,) that each of them scores; each row has one model."""


def crossfit(frame: pl.DataFrame, label: NDArray[np.int32], fold: NDArray[np.int32], depth: int,
             recipe: Recipe, shared: Bools | None = None) -> Fits:
    """Return the rows of each fold, with a model that was fitted on the rows of the other folds.

    ``shared`` (folds, n) tells which rows are in a fold's haystacks too (memlab.learn.folds.in_folds).
    """
    parts = np.unique(fold).tolist()
    models = fit_each(frame, label, depth, recipe, [without(label, fold, shared, part) for part in parts])
    return [(fold == part, model) for part, model in zip(parts, models)]


def fit_each(frame: pl.DataFrame, label: NDArray[np.int32], depth: int, recipe: Recipe,
             kept: Sequence[Bools]) -> list[RankModel]:
    """Return a fit for each of these sets of rows, (n,) each; one is made on each core at a time."""
    with ThreadPoolExecutor(usable_cores()) as pool:  # LightGBM computes outside Python's lock
        return list(pool.map(lambda rows: fit(frame, label, depth, recipe, kept=rows), kept))


def apply_fits(fits: Fits, frame: pl.DataFrame) -> Scores:
    """Return each row's score by its own model, shape (n,)."""
    scores = np.zeros(frame.height)
    for mine, model in fits:
        scores[mine] = apply(model, frame if mine.all() else frame.filter(mine))  # a saved fit copies no row
    return scores


def without(label: NDArray[np.int32], fold: NDArray[np.int32], shared: Bools | None,
            *held_out: int) -> Bools:
    """Return the rows to fit on without some folds, (n,): those of other folds, and no negative that they share."""
    kept = ~np.isin(fold, held_out)
    if shared is not None:
        kept &= (label > 0) | ~shared[list(held_out)].any(axis=0)
    return kept


@dataclasses.dataclass(frozen=True)
class Learnable:
    """Rows of ``features``, best first in each question, with the gold that fits learn from; arrays are (n,).

    label: 1 for evidence. terms: of the row's turn. session, held: the number of the row's session, and whether that
    holds evidence. fold: of the question. dataset: number of the row's data set. shared (folds, n): whether the session
    is in a fold's haystacks too (memlab.learn.folds.in_folds).
    """

    frame: pl.DataFrame
    label: NDArray[np.int32]
    terms: Terms
    session: Ints
    held: Bools
    fold: NDArray[np.int32]
    dataset: NDArray[np.int32]
    shared: Bools

    def sessions(self, rows: Bools,
                 scores: Scores) -> tuple[pl.DataFrame, Bools, NDArray[np.int32]]:
        """Return ``session_table`` of these rows by the scores (n,) of all rows, which hold evidence, and data sets."""
        frame = self.frame.filter(rows)
        table = session_table(frame, self.session[rows], scores[rows])
        known = frame.select("question").with_columns(
            pl.Series("session", self.session[rows]), pl.Series("held", self.held[rows]),
            pl.Series("dataset", self.dataset[rows])).unique()
        found = table.select(KEY).join(known, on=KEY, how="left", maintain_order="left")
        return table, found["held"].to_numpy(), found["dataset"].to_numpy()


def crossfit_both(rows: Learnable, depth: int, recipe: Recipe) -> Fits:
    """Return the rows of each fold with a model of the other folds, trees and sessions.

    With n folds these are n (n + 1) / 2 fits of trees. There is no session model with two folds, or with
    ``recipe.places`` 0.
    """
    fits = crossfit(rows.frame, rows.label, rows.fold, depth, recipe, rows.shared)
    parts = np.unique(rows.fold).tolist()
    if not recipe.places or len(parts) < 3:
        return fits
    scores = {part: np.zeros(len(rows.fold)) for part in parts}  # of all other folds, by trees that have seen neither
    pairs = list(combinations(parts, 2))
    kept = [without(rows.label, rows.fold, rows.shared, *pair) for pair in pairs]
    for pair, model in zip(pairs, fit_each(rows.frame, rows.label, depth, recipe, kept)):
        for part, other in (pair, pair[::-1]):
            theirs = rows.fold == other
            scores[part][theirs] = apply(model, rows.frame.filter(theirs))
    return [(mine, with_sessions(model, rows, ~mine, scores[part])) for part, (mine, model) in zip(parts, fits)]


def with_sessions(model: RankModel, rows: Learnable, used: Bools, scores: Scores) -> RankModel:
    """Return the model with session models that are fitted on the ``used`` rows; scores (n,) are out of fold.

    A model without trees has none: it learned no score that sessions could be ordered by.
    """
    if not model.trees:
        return model
    table, held, dataset = rows.sessions(used, scores)
    sessions, behind = fit_sessions(table, held, dataset), None
    place, kept = session_places(sessions, table), model.recipe.places
    later = place >= kept
    if model.recipe.likeness and later.any():
        behind = fit_sessions(behind_table(table, place, kept, rows.terms.only(used)), held[later], dataset[later])
    return dataclasses.replace(model, sessions=sessions, behind=behind)


def together(parts: Sequence[Learnable]) -> Learnable:
    """Return the rows of data sets as one, questions and data sets numbered anew; raise MemlabError for other lanes."""
    if len({tuple(part.frame.columns) for part in parts}) > 1:
        raise MemlabError("the rankings of these data sets have other lanes", where="learn/ranker",
                          fix="use searches that all of them have")
    offsets = np.cumsum([0, *(int(part.frame["question"].to_numpy().max()) + 1 for part in parts)])
    frame = pl.concat(part.frame.with_columns(pl.col("question").cast(pl.Int64) + int(offset))
                      for part, offset in zip(parts, offsets))
    most = max(len(part.shared) for part in parts)
    shared = [np.pad(part.shared, ((0, most - len(part.shared)), (0, 0))) for part in parts]
    label, session, held, fold = (np.concatenate([getattr(part, name) for part in parts])
                                  for name in ("label", "session", "held", "fold"))
    dataset = np.repeat(np.arange(len(parts), dtype=np.int32), [len(part.label) for part in parts])
    return Learnable(frame, label, join_terms([part.terms for part in parts]), session, held, fold, dataset,
                     np.hstack(shared))


def fit_both(rows: Learnable, depth: int, recipe: Recipe, data: tuple[str, ...] = ()) -> RankModel:
    """Fit trees on all rows, and session models on the cross-fitted scores of all rows."""
    model = fit(rows.frame, rows.label, depth, recipe, data)
    if not recipe.places:
        return model
    scores = apply_fits(crossfit(rows.frame, rows.label, rows.fold, depth, recipe, rows.shared), rows.frame)
    return with_sessions(model, rows, np.ones(len(rows.fold), np.bool_), scores)


def places(fits: Fits, frame: pl.DataFrame, session: Ints, scores: Scores,
           terms: Terms) -> pl.DataFrame | None:
    """Return (question, unit, session, place) of each row by its own model; None if no model places sessions.

    session, scores: (n,) of the rows; terms: of their turns. The place is that of the session in its question, from 0;
    null if its model leaves it in the order of the best turns, or has no session model.
    """
    place_of = np.full(frame.height, -1)
    for mine, model in fits:
        if model.sessions is None or not model.recipe.places:
            continue
        rows = frame if mine.all() else frame.filter(mine)
        table = session_table(rows, session[mine], scores[mine])
        place, kept = session_places(model.sessions, table), model.recipe.places
        if model.behind is not None:
            behind = behind_table(table, place, kept, terms.only(mine))
            place[place >= kept] = kept + session_places(model.behind, behind)
        else:
            place[place >= kept] = -1
        keys = rows.select("question").with_columns(pl.Series("session", session[mine]))
        placed = table.select(*KEY, pl.Series("place", place))
        place_of[mine] = keys.join(placed, on=KEY, how="left", maintain_order="left")["place"].to_numpy()
    if (place_of < 0).all():
        return None
    return frame.select("question", "unit", pl.Series("session", session), pl.Series("place", place_of)).with_columns(
        pl.col("place").replace(-1, None))
