from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

from memlab.learn.ranker.cross_fit import Learnable, apply_fits, together
from memlab.support.errors import MemlabError
from tests.learn.ranker.worlds import RECIPE, first, learnable, learned, world

pytest.importorskip("lightgbm")


def test_data_sets_are_put_together_with_questions_of_their_own_whatever_the_order_of_their_lanes() -> None:
    rows = learned(folds=4).learnable(first())
    other = dataclasses.replace(rows, frame=rows.frame.select(reversed(rows.frame.columns)))
    both = together([rows, other])
    assert both.frame["question"].n_unique() == 2 * rows.frame["question"].n_unique()
    assert both.frame.columns == rows.frame.columns
    assert both.shared.shape == (4, 2 * rows.frame.height)
    assert both.dataset.tolist() == [0] * rows.frame.height + [1] * rows.frame.height
    with pytest.raises(MemlabError, match="other lanes"):
        together([rows, dataclasses.replace(rows, frame=rows.frame.drop("z linear"))])


def test_a_negative_that_the_held_out_fold_shares_teaches_nothing() -> None:
    rows = learnable()
    shared = np.zeros((3, len(rows.label)), bool)
    shared[1, :400] = True
    sharing = dataclasses.replace(rows, shared=shared)

    def scores(of: Learnable, frame: pl.DataFrame) -> np.ndarray:
        return apply_fits(dataclasses.replace(of, frame=frame).crossfit(20, RECIPE), frame)[rows.fold == 1]

    before = scores(sharing, rows.frame)
    bad = pl.Series(shared[1] & (rows.label == 0) & (rows.fold != 1))
    moved = rows.frame.with_columns(good=pl.when(bad).then(9.0).otherwise("good"))
    assert (before == scores(sharing, moved)).all()
    assert (scores(rows, moved) != before).any()
    evidence = pl.Series(shared[1] & (rows.label > 0) & (rows.fold != 1))
    moved = rows.frame.with_columns(good=pl.when(evidence).then(-9.0).otherwise("good"))
    assert (scores(sharing, moved) != before).any()


def test_a_data_set_weighs_the_same_whatever_the_number_of_its_questions() -> None:
    """In the large one ``good`` is evidence, in the small one ``noise``: a fit of both follows both alike."""
    large, small = learnable(questions=60), learnable(seed=1, questions=12)
    swapped = small.frame.rename({"good": "noise", "noise": "good"}).select(small.frame.columns)
    rows = together([large, dataclasses.replace(small, frame=swapped)])
    gains = dict(zip(("good", "noise"), rows.fit(20, RECIPE).gains))
    alone = dict(zip(("good", "noise"), dataclasses.replace(rows, dataset=rows.dataset * 0).fit(20, RECIPE).gains))
    assert gains["noise"] / gains["good"] > 1.5 * alone["noise"] / alone["good"]


def test_of_a_large_data_set_some_questions_teach() -> None:
    assert learnable(questions=60).fit(20, dataclasses.replace(RECIPE, questions=20)).questions == 20


def test_a_fit_that_starts_from_another_keeps_its_trees_and_mends_what_they_get_wrong() -> None:
    start = learnable(questions=60).fit(20, RECIPE)
    frame, label = world(seed=2)
    opposite = frame.with_columns(-pl.col("good"))
    rows = dataclasses.replace(learnable(seed=2), frame=opposite)
    model = rows.fit(20, dataclasses.replace(RECIPE, trees=60), start=start)
    assert model.trees[:len(start.trees)] == start.trees
    assert len(model.trees) > len(start.trees)
    everything = np.ones(len(label), np.bool_)
    before, after = (apply_fits([(everything, fit)], opposite) for fit in (start, model))
    assert before[label > 0].mean() < before[label == 0].mean()
    assert after[label > 0].mean() > after[label == 0].mean()
