"""Fit of learned fusion on one or several data sets: ``memlab train ranker out=FIT.json ...``.

    memlab train ranker data=locomo data.path=FILE out=FIT.json
    memlab train ranker data=locomo data.path=FILE data=longmemeval_s data.path=FILE out=FIT.json
    memlab train ranker start=shipped data=custom data.path=FOLDER out=FIT.json

Each word ``data=...`` opens a data set; ``data.*`` behind it belongs to it. All other words are those of memlab run and
hold for every data set; without ``system=`` or ``rank/score=`` the ranking is that of ``system=best_learned``. With
``start=shipped`` the trees that memlab ships stay, and new ones mend what they get wrong on your labels.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Literal

from memlab.experiment.harness.arm import Arm
from memlab.experiment.harness.arm import load as load_data
from memlab.learn.command import read_arm, split
from memlab.learn.fits import evidence_keys, save
from memlab.learn.ranker.cross_fit import together
from memlab.learn.ranker.importances import describe_importances
from memlab.learn.ranker.model import load
from memlab.learn.ranker.stage import SHIPPED, LearnedScore
from memlab.learn.recipe import train_command
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError
from memlab.support.machine import OF_A_RUN, enough_memory


@stage
class RankerRecipe:
    """Settings of the fit. out: the file that it is written to."""

    out: LocalPath
    start: Literal["shipped"] | None = None  # shipped: new trees behind those that memlab ships; null: from nothing


def first_stage(words: Sequence[str]) -> tuple[LearnedScore, Arm, Tables]:
    """Return the stage that these words configure, its arm, and all tables after its first step."""
    if not any(word.startswith(("system=", "rank/score=")) for word in words):
        words = [*words, "system=best_learned"]
    arm, store = read_arm(words)
    score = arm.pipeline.score
    if not isinstance(score, LearnedScore):
        raise MemlabError("the slot rank.score holds no learned fusion",
                          fix="system=best_learned or rank/score=learned")
    tables = arm.pipeline.replace(score=score.linear()).run(load_data(arm.dataset), store, until="score")
    return score, arm, tables.updated({"ranking": score.with_signals(tables, store)})


@enough_memory(OF_A_RUN)
def train(recipe: RankerRecipe, words: Sequence[str]) -> str:
    """Fit on the data sets that the words name, save the fit, and return a line about it."""
    return fit_all(recipe, split(words))


def fit_all(recipe: RankerRecipe, parts: Sequence[Sequence[str]]) -> str:
    """Fit on the data set that each of these lists of words names, save the fit, and return a line about it."""
    stages = [first_stage(part) for part in parts]
    score, names = stages[-1][0], [arm.dataset.name for _, arm, _ in stages]
    rows = together([score.learnable(tables) for score, _, tables in stages])
    start = load(SHIPPED) if recipe.start else None
    model = rows.fit(score.depth, score.recipe, start=start)
    learnt = {key for _, _, tables in stages for key in evidence_keys(tables)["key"]}
    model = dataclasses.replace(
        model, data=(*model.data, *names), learnt=tuple(sorted({*model.learnt, *learnt})),
        encoder="" if score.encoder is None else score.encoder(), weights=score.weights)
    save(model, recipe.out)
    return (f"fitted on {model.questions:,} questions of {', '.join(names)}: {len(model.trees)} trees over "
            f"{len(model.features)} features: {recipe.out}\n" + describe_importances(model))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    return train_command(RankerRecipe, __doc__ or "", train, argv)
