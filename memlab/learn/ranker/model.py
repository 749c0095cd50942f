"""Ranking model: LightGBM's LambdaMART over the features of (question, turn) pairs; its fit, scores, and JSON file.

LambdaMART (Burges, MSR-TR-2010-82) adds trees whose gradients are the pairs of evidence and other turns, weighted by
what swapping them changes in nDCG. All functions are pure: a calibrator can refit without any of the folds.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from memlab.errors import MemlabError
from memlab.learn.ranker.boosted_trees import Columns, boosted_trees
from memlab.learn.ranker.sessions import SessionModel
from memlab.learn.ranker.trees import Tree, lightgbm, trees_of
from memlab.runtime.cores import usable_cores
from memlab.stage import Names, stage

FORMAT = "memlab-ranker-1"
MAX_BYTES = 64 * 2**20
"""Largest file that is read."""

Scores = NDArray[np.float64]


@stage
class Recipe:
    """Settings of a fit. pool: first candidates of each question that are learned from, evidence or not.

    places: first sessions that a session model puts in order (memlab.learn.ranker.sessions); 0: by their best turns.
    likeness: whether a second session model orders the sessions behind them, by their likeness to the first as well.
    """

    trees: Annotated[int, Field(ge=1, le=5000)] = 120
    leaves: Annotated[int, Field(ge=2, le=1024)] = 15
    rate: Annotated[float, Field(gt=0, le=1)] = 0.08
    share: Annotated[float, Field(gt=0, le=1)] = 0.3  # features that each tree may use, drawn by seed
    smallest_leaf: Annotated[int, Field(ge=1)] = 50
    l2: Annotated[float, Field(ge=0)] = 1.0
    truncation: Annotated[int, Field(ge=1)] = 20  # pairs count if one of them is among so many first
    pool: Annotated[int, Field(ge=2)] = 200
    places: Annotated[int, Field(ge=0)] = 1
    likeness: bool = True
    seed: Annotated[int, Field(ge=0)] = 0


@stage
class RankModel:
    """A fitted model. depth: first candidates that it scores; data: names of the data sets that it was fitted on.

    sessions, behind: models of the first sessions, and of those behind them; null without ``recipe.places``.
    gains: what the splits by each feature gained in the loss, (features,).
    """

    format: str
    level: Literal["turn"]
    depth: Annotated[int, Field(ge=1)]
    features: Names
    trees: Annotated[tuple[Tree, ...], Field(strict=False, max_length=5000)]
    recipe: Recipe
    data: Names
    questions: Annotated[int, Field(ge=1)]
    sessions: SessionModel | None
    behind: SessionModel | None
    gains: Annotated[tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...], Field(strict=False)]

    @model_validator(mode="after")
    def _matches_this_version(self) -> RankModel:
        if self.format != FORMAT:
            raise ValueError(f"made by another version: expected format {FORMAT}")
        if len(set(self.features)) != len(self.features) or not self.features:
            raise ValueError("the names of the features are not distinct")
        if len(self.gains) != len(self.features):
            raise ValueError("there is not one gain for each feature")
        if any(max(tree.split_feature) >= len(self.features) for tree in self.trees):
            raise ValueError("a tree asks for a feature that has no name")
        return self


def fit(frame: pl.DataFrame, label: NDArray[np.int32], depth: int, recipe: Recipe,
        data: tuple[str, ...] = (), kept: NDArray[np.bool_] | None = None) -> RankModel:
    """Fit on the rows of ``features``, those of a question together and best first; label (n,) is 1 for evidence.

    ``kept`` (n,) are the rows that may be learned from, all by default; places in the pool count every row. Questions
    without evidence among the first ``recipe.pool`` teach nothing. The order of the questions is that of the
    rows, so it must not depend on their numbers. Raises MemlabError if no question is left.
    """
    names = [c for c in frame.columns if c not in ("question", "unit")]
    question = frame["question"].to_numpy()
    place = frame.select(pl.int_range(pl.len()).over("question")).to_series().to_numpy()
    used = (place < recipe.pool) & (np.ones(len(label), bool) if kept is None else kept)
    used &= np.isin(question, np.unique(question[used & (label > 0)]))
    if not used.any():
        raise MemlabError("no question has evidence among its candidates to fit on", where="learn/ranker",
                          fix="data with turn-level evidence, or a ranking that finds it")
    asked = question[used]
    sizes = np.diff([0, *(np.flatnonzero(np.diff(asked)) + 1), len(asked)])
    library = lightgbm()
    settings = {
        "objective": "lambdarank", "num_leaves": recipe.leaves, "learning_rate": recipe.rate,
        "feature_fraction": recipe.share, "min_data_in_leaf": recipe.smallest_leaf, "lambda_l2": recipe.l2,
        "lambdarank_truncation_level": recipe.truncation, "max_bin": 127, "seed": recipe.seed, "verbosity": -1,
        "deterministic": True, "force_col_wise": True, "num_threads": 1}  # waiting threads cost 3 x on a busy machine
    x = frame.filter(used).select(names).to_numpy()
    rows = library.Dataset(x, label[used], group=sizes, params={"verbosity": -1})
    fitted = library.train(settings, rows, recipe.trees)
    return RankModel(format=FORMAT, level="turn", depth=depth, features=tuple(names),
                     trees=trees_of(fitted.model_to_string()), recipe=recipe, data=data, questions=len(sizes),
                     sessions=None, behind=None, gains=tuple(float(gain) for gain in fitted.feature_importance("gain")))


def inputs(model: RankModel, frame: pl.DataFrame) -> Columns:
    """Return the model's features of these rows, (n,) each; raise MemlabError for a feature that is missing."""
    missing = [name for name in model.features if name not in frame.columns]
    if missing:
        raise MemlabError(f"the fit needs {len(missing)} features that this ranking lacks (the first: '{missing[0]}')",
                          where="learn/ranker", fix="use the searches that it was fitted with, or fit anew")
    numbers = frame.select(pl.col(model.features).cast(pl.Float32).fill_null(np.nan))  # nulls cost more later
    return [column.to_numpy() for column in numbers]


def apply(model: RankModel, frame: pl.DataFrame) -> Scores:
    """Return the model's score of each row of ``features``, shape (n,)."""
    return boosted_trees(model.trees).scores(inputs(model, frame), frame.height)


def leads(model: RankModel, ahead: pl.DataFrame, behind: pl.DataFrame) -> NDArray[np.float64]:
    """Return what each feature adds to the lead of each row over the one behind it, (n, features)."""
    return boosted_trees(model.trees).leads(inputs(model, ahead), inputs(model, behind), ahead.height)


Fits = Sequence[tuple[NDArray[np.bool_], RankModel]]
"""Models, and the rows (n,) that each of them scores; each row has one model."""


def crossfit(frame: pl.DataFrame, label: NDArray[np.int32], fold: NDArray[np.int32], depth: int,
             recipe: Recipe, shared: NDArray[np.bool_] | None = None) -> Fits:
    """Return the rows of each fold, with a model that was fitted on the rows of the other folds.

    ``shared`` (folds, n) tells which rows are in a fold's haystacks too (memlab.learn.folds.in_folds).
    """
    parts = np.unique(fold).tolist()
    models = fit_each(frame, label, depth, recipe, [without(label, fold, shared, part) for part in parts])
    return [(fold == part, model) for part, model in zip(parts, models)]


def fit_each(frame: pl.DataFrame, label: NDArray[np.int32], depth: int, recipe: Recipe,
             kept: Sequence[NDArray[np.bool_]]) -> list[RankModel]:
    """Return a fit for each of these sets of rows, (n,) each; one is made on each core at a time."""
    with ThreadPoolExecutor(usable_cores()) as pool:  # LightGBM computes outside Python's lock
        return list(pool.map(lambda rows: fit(frame, label, depth, recipe, kept=rows), kept))


def apply_fits(fits: Fits, frame: pl.DataFrame) -> Scores:
    """Return each row's score by its own model, shape (n,)."""
    scores = np.zeros(frame.height)
    for mine, model in fits:
        scores[mine] = apply(model, frame if mine.all() else frame.filter(mine))  # a saved fit copies no row
    return scores


def without(label: NDArray[np.int32], fold: NDArray[np.int32], shared: NDArray[np.bool_] | None,
            *held_out: int) -> NDArray[np.bool_]:
    """Return the rows to fit on without some folds, (n,): those of other folds, and no negative that they share."""
    kept = ~np.isin(fold, held_out)
    if shared is not None:
        kept &= (label > 0) | ~shared[list(held_out)].any(axis=0)
    return kept


def save(model: RankModel, path: Path) -> None:
    """Write a fit as JSON."""
    path.write_text(json.dumps(dataclasses.asdict(model), separators=(",", ":")) + "\n", encoding="utf-8")


def load(path: Path) -> RankModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    fix = "fit one with python -m memlab.learn.ranker"
    try:
        if path.stat().st_size > MAX_BYTES:
            raise MemlabError("is too large for a ranking model", where=str(path), fix=fix)
        return RankModel(**_fields(json.loads(path.read_text(encoding="utf-8"))))
    except OSError as error:
        raise MemlabError(f"cannot be read ({error.strerror})", where=str(path), fix=fix) from error
    except (ValueError, TypeError, RecursionError) as error:  # not JSON, not a fit, or of another version
        reason = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise MemlabError(f"is not a ranking model: {reason}", where=str(path), fix=fix) from error


def _fields(content: Any) -> dict[str, Any]:
    """Return the fields of a model, with its trees and recipe as objects; raise TypeError or ValueError."""
    if not isinstance(content, dict) or not isinstance(content.get("trees"), list):
        raise ValueError("it has no trees")
    kinds = {"recipe": Recipe, "sessions": SessionModel, "behind": SessionModel}
    return {**content, "trees": tuple(map(_tree, content["trees"])),
            **{name: kind(**content[name]) for name, kind in kinds.items() if content.get(name) is not None}}


def _tree(fields: Any) -> Tree:
    """Return a tree; raise TypeError or ValueError."""
    if not isinstance(fields, dict):
        raise ValueError("a tree is not an object with lists")
    return Tree(**fields)
