"""A small world for the tests of learned fusion: four generated lives, ranked by words."""

from __future__ import annotations

from functools import cache

from memlab.data.synthetic.dataset import Synthetic
from memlab.learn.ranker.model import Recipe
from memlab.learn.ranker.stage import LearnedScore
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.pipeline.tables import Tables
from memlab.store import Store

DATA = Synthetic(lives=4, sessions=12, questions=12)
RECIPE = Recipe(trees=8, smallest_leaf=5)
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
