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
from memlab.learn.ranker.trees import Matrix, Tree, boosted_trees, lightgbm, trees_of
from memlab.pipeline.stage import Names, stage
from memlab.stages.rank.fusion import NonNegative
from memlab.support.errors import MemlabError

FORMAT = "memlab-ranker-2"

Scores = NDArray[np.float64]

MENDED = 2
"""Questions for each tree behind those of ``start``: a few of them call for few changes."""

WEIGHT = 400.0
"""Sum of the weights of a data set's questions, whatever their number."""


@stage
class Recipe:
    """Settings of a fit. pool: first candidates of each question that are learned from, evidence or not.

    questions: with evidence in the pool, of each data set, drawn by seed if it has more; the rows of a data set weigh
    as much together as those of any other. home: whether it scores the kind of data that it learned from; if not, the
    weights have a say (``memlab.learn.ranker.rescore``).
    """

    trees: Annotated[int, Field(ge=1, le=5000)] = 300
    leaves: Annotated[int, Field(ge=2, le=1024)] = 5
    rate: Annotated[float, Field(gt=0, le=1)] = 0.07
    share: Annotated[float, Field(gt=0, le=1)] = 0.3  # features that each tree may use, drawn by seed
    smallest_leaf: Annotated[int, Field(ge=1)] = 80
    l2: Annotated[float, Field(ge=0)] = 5.0
    truncation: Annotated[int, Field(ge=1)] = 20  # pairs count if one of them is among so many first
    pool: Annotated[int, Field(ge=2)] = 100
    questions: Annotated[int, Field(ge=1)] = 1200
    home: bool = True
    seed: Annotated[int, Field(ge=0)] = 0


@stage
class RankModel:
    """A fitted model. depth: first candidates that it scores; data: names of the data sets that it was fitted on.

    questions: their number. learnt: their keys (``evidence_keys``), by which they are found again. encoder: digest of
    the encoder whose scores are signals (``encoder_digest``). gains: what the splits by each feature gained in the
    loss, (features,). weights: those of the first ranking; empty: not recorded.
    """

    format: str
    level: Literal["turn"]
    depth: Annotated[int, Field(ge=1)]
    features: Names
    trees: Annotated[tuple[Tree, ...], Field(strict=False, max_length=5000)]
    recipe: Recipe
    data: Names
    questions: Annotated[int, Field(ge=1)]
    learnt: Names
    encoder: str
    gains: Annotated[tuple[Annotated[float, Field(ge=0, allow_inf_nan=False)], ...], Field(strict=False)]
    weights: dict[str, NonNegative] = Field(default_factory=dict)

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
        kept: NDArray[np.bool_] | None = None, dataset: NDArray[np.int32] | None = None,
        start: RankModel | None = None) -> RankModel:
    """Fit on the rows of ``features``, those of a question together and best first; label (n,) is 1 for evidence.

    ``kept`` (n,) are the rows that may be learned from, all by default; places in the pool count every row. Questions
    without evidence among the first ``recipe.pool`` teach nothing. ``dataset`` (n,) numbers the data sets, by default
    one. With ``start``, its trees stay, and at most one new tree for every ``MENDED`` questions mends what they get
    wrong. The order of the questions is that of the rows, so it must not depend on their numbers. Raises MemlabError if
    no question is left.
    """
    names = [c for c in frame.columns if c not in ("question", "unit")] if start is None else [*start.features]
    dataset = np.zeros(len(label), np.int32) if dataset is None else dataset
    question = frame["question"].to_numpy()
    place = frame.select(pl.int_range(pl.len()).over("question")).to_series().to_numpy()
    used = (place < recipe.pool) & (np.ones(len(label), bool) if kept is None else kept)
    used &= np.isin(question, np.unique(question[used & (label > 0)]))
    if not used.any():
        raise MemlabError("no question has evidence among its candidates to fit on", where="learn/ranker",
                          fix="data with turn-level evidence, or a ranking that finds it")
    weight = np.zeros(len(label))
    for number in np.unique(dataset[used]):
        mine = used & (dataset == number)
        asked = question[mine][np.flatnonzero(np.diff(question[mine], prepend=-1))]
        if len(asked) > recipe.questions:
            asked = np.random.default_rng(recipe.seed).choice(asked, recipe.questions, replace=False)
        weight[mine & np.isin(question, asked)] = WEIGHT / len(asked)
    used = weight > 0
    asked = question[used]
    sizes = np.diff([0, *(np.flatnonzero(np.diff(asked)) + 1), len(asked)])
    library = lightgbm()
    settings = {
        "objective": "lambdarank", "num_leaves": recipe.leaves, "learning_rate": recipe.rate,
        "feature_fraction": recipe.share, "min_data_in_leaf": recipe.smallest_leaf, "lambda_l2": recipe.l2,
        "lambdarank_truncation_level": recipe.truncation, "max_bin": 63, "seed": recipe.seed, "verbosity": -1,
        "deterministic": True, "force_col_wise": True, "num_threads": 1}  # waiting threads cost 3 x on a busy machine
    x = frame.filter(used)
    rows = library.Dataset(x.select(names).to_numpy(), label[used], group=sizes, weight=weight[used],
                           init_score=None if start is None else apply(start, x), params={"verbosity": -1})
    fitted = library.train(settings, rows, recipe.trees if start is None else min(recipe.trees, len(sizes) // MENDED))
    gains = fitted.feature_importance("gain") + (0.0 if start is None else np.array(start.gains))
    return RankModel(format=FORMAT, level="turn", depth=depth, features=tuple(names),
                     trees=(() if start is None else start.trees) + trees_of(fitted.model_to_string()), recipe=recipe,
                     data=() if start is None else start.data, questions=len(sizes), learnt=(), encoder="",
                     gains=tuple(float(gain) for gain in gains))


def inputs(model: RankModel, frame: pl.DataFrame) -> Matrix:
    """Return the model's features of these rows, (n, features); raise MemlabError for a feature that is missing."""
    missing = [name for name in model.features if name not in frame.columns]
    if missing:
        raise MemlabError(f"the fit needs {len(missing)} features that this ranking lacks (the first: '{missing[0]}')",
                          where="learn/ranker", fix="use the searches that it was fitted with, or fit anew")
    return frame.select(model.features).to_numpy().astype(np.float32, copy=False)


def apply(model: RankModel, frame: pl.DataFrame) -> Scores:
    """Return the model's score of each row of ``features``, shape (n,)."""
    return boosted_trees(model.trees).scores(inputs(model, frame))


def load(path: Path) -> RankModel:
    """Read a fit; raise MemlabError if the file is missing, damaged, or of another version."""
    return fits.load(path, RankModel, "a ranking model", "fit one with memlab train ranker")
