"""Ranking model: LightGBM's LambdaMART over the features of (question, turn) pairs; its fit, scores, and JSON file.

LambdaMART (Burges, MSR-TR-2010-82) adds trees whose gradients are the pairs of evidence and other turns, weighted by
what swapping them changes in nDCG. All functions are pure: a calibrator can refit without any of the folds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field, model_validator

from memlab.learn import fits
from memlab.learn.ranker.sessions import SessionModel, need_features
from memlab.learn.ranker.trees import Matrix, Tree, boosted_trees, lightgbm, trees_of
from memlab.pipeline.stage import Names, stage
from memlab.support.errors import MemlabError

FORMAT = "memlab-ranker-1"

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


def inputs(model: RankModel, frame: pl.DataFrame) -> Matrix:
    """Return the model's features of these rows, (n, features); raise MemlabError for a feature that is missing."""
    need_features(model.features, frame, "features")
    return frame.select(pl.col(model.features).cast(pl.Float32).fill_null(np.nan)).to_numpy()


def apply(model: RankModel, frame: pl.DataFrame) -> Scores:
    """Return the model's score of each row of ``features``, shape (n,)."""
    return boosted_trees(model.trees).scores(inputs(model, frame))


def leads(model: RankModel, ahead: pl.DataFrame, behind: pl.DataFrame) -> NDArray[np.float64]:
    """Return what each feature adds to the lead of each row over the one behind it, (n, features)."""
    trees = boosted_trees(model.trees)
    return trees.contributions(inputs(model, ahead)) - trees.contributions(inputs(model, behind))


def load(path: Path) -> RankModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    return fits.load(path, RankModel, "a ranking model", "fit one with memlab train ranker")
