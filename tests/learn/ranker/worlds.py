"""A small world for the tests of learned fusion: four generated lives, ranked by words."""

from __future__ import annotations

from functools import cache

import numpy as np
import polars as pl

from memlab.data.synthetic.dataset import Synthetic
from memlab.learn.ranker.cross_fit import Learnable
from memlab.learn.ranker.model import Recipe
from memlab.learn.ranker.stage import LearnedScore
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import Tables
from memlab.store import Store

DATA = Synthetic(lives=4, sessions=12, questions=12)
RECIPE = Recipe(trees=20, smallest_leaf=5, share=1.0)
LEXICAL = Pipeline(dense=EmptyStage(writes=("hits",)))


@cache
def lives() -> Tables:
    """Four lives, loaded."""
    return DATA.load()


@cache
def searched() -> Tables:
    """Four lives with the hits of BM25, and its ranking of turns."""
    return LEXICAL.run(lives(), Store(), until="score")


def learned(**settings: object) -> LearnedScore:
    """A small learned fusion."""
    return LearnedScore(**{"depth": 40, "recipe": RECIPE, **settings})


@cache
def first() -> Tables:
    """All tables after the first step of learned fusion."""
    return searched().updated(learned().first(searched(), Store()))


def world(seed: int = 0, questions: int = 60, pool: int = 20) -> tuple[pl.DataFrame, np.ndarray]:
    """Candidates whose evidence has the highest ``good``; ``noise`` tells nothing."""
    rng = np.random.default_rng(seed)
    n = questions * pool
    frame = pl.DataFrame({"question": np.repeat(np.arange(questions), pool), "unit": np.arange(n),
                          "good": rng.normal(size=n), "noise": rng.normal(size=n)})
    best = pl.col("good").rank("ordinal", descending=True).over("question") <= 2
    return frame, frame.select(best.cast(pl.Int32)).to_series().to_numpy()


def learnable(seed: int = 0, questions: int = 60) -> Learnable:
    """The candidates of ``world`` in three folds that share nothing; each turn is a session."""
    frame, label = world(seed, questions)
    n = frame.height
    return Learnable(frame, label, np.arange(n), (frame["question"].to_numpy() % 3).astype(np.int32),
                     np.zeros(n, np.int32), np.zeros((3, n), np.bool_))
