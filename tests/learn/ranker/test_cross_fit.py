from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.learn.fits import save
from memlab.learn.ranker import sessions
from memlab.learn.ranker.cross_fit import Learnable, apply_fits, crossfit_both, fit_both, places, together
from memlab.learn.ranker.model import load
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.learn.ranker.worlds import RECIPE, first, learned, searched

pytest.importorskip("lightgbm")


def learnable() -> Learnable:
    return learned(folds=4).learnable(first())


def test_the_turns_that_a_session_model_learns_from_are_scored_out_of_fold() -> None:
    """With scores of trees that have seen the questions, the weight of the learned score would be larger."""
    rows = learnable()
    everything = np.ones(len(rows.fold), np.bool_)
    model = fit_both(rows, 40, RECIPE)
    assert model.sessions is not None
    seen = apply_fits([(everything, model)], rows.frame)
    assert sessions.fit_sessions(*rows.sessions(everything, seen)).weights[0] > model.sessions.weights[0]


def test_there_is_no_session_model_with_two_folds_or_no_places() -> None:
    rows = learnable()
    two = dataclasses.replace(rows, fold=rows.fold % 2, shared=rows.shared[:2])
    none = dataclasses.replace(RECIPE, places=0)
    for fits in (crossfit_both(two, 40, RECIPE), crossfit_both(rows, 40, none)):
        assert all(model.sessions is model.behind is None for _, model in fits)
        assert places(fits, rows.frame, rows.session, apply_fits(fits, rows.frame), rows.terms) is None
    assert fit_both(rows, 40, none).sessions is None


def test_the_first_session_of_a_ranking_is_that_of_highest_value_and_the_others_follow_by_likeness() -> None:
    rows = learnable()
    fits = crossfit_both(rows, 40, RECIPE)
    scores = apply_fits(fits, rows.frame)
    placed = places(fits, rows.frame, rows.session, scores, rows.terms)
    assert placed is not None
    ranking = sessions.rescore(first()["ranking"], rows.frame, scores, 40, placed)
    ranked = ranking.filter(pl.col("rank") <= 40).join(first()["units"].select("unit", "session"), on="unit").sort(
        "question", "rank")
    shown = {question: list(dict.fromkeys(own["session"])) for (question,), own in ranked.group_by("question")}
    for mine, model in fits:
        assert model.sessions is not None
        assert model.behind is not None
        assert model.behind.features == ("best learned", "second learned", "likeness")
        table = sessions.session_table(rows.frame.filter(mine), rows.session[mine], scores[mine])
        place = sessions.session_places(model.sessions, table)
        later = sessions.session_values(model.behind, sessions.behind_table(table, place, 1, rows.terms.only(mine)))
        for (question,), own in table.with_columns(pl.Series("place", place)).group_by("question"):
            leader = own.filter(pl.col("place") == 0)["session"].to_list()
            values = dict(later.filter(pl.col("question") == question).select("session", "value").iter_rows())
            assert shown[question][:1] == leader
            behind = [values[session] for session in shown[question][1:]]
            assert behind == sorted(behind, reverse=True)
            assert set(values) == set(shown[question][1:])
    plain = sessions.rescore(first()["ranking"], rows.frame, scores, 40)
    assert not plain["unit"].equals(ranking["unit"])
    assert plain["score"].equals(ranking["score"])


def test_a_saved_fit_carries_its_session_model(tmp_path: Path) -> None:
    model = fit_both(learnable(), 40, RECIPE)
    save(model, tmp_path / "fit.json")
    assert load(tmp_path / "fit.json") == model
    assert model.sessions is not None
    assert model.behind is not None
    save(dataclasses.replace(model, behind=None), tmp_path / "first.json")
    save(dataclasses.replace(model, behind=None, sessions=None), tmp_path / "plain.json")
    rankings = [learned(model=tmp_path / name).run(searched(), Store())["ranking"]["unit"].to_list()
                for name in ("fit.json", "first.json", "plain.json")]
    assert len(set(map(tuple, rankings))) == 3


def test_data_sets_are_put_together_with_questions_of_their_own() -> None:
    rows = learnable()
    both = together([rows, rows])
    assert both.frame["question"].n_unique() == 2 * rows.frame["question"].n_unique()
    assert both.shared.shape == (4, 2 * rows.frame.height)
    assert len(both.terms.turn) == 2 * rows.frame.height
    with pytest.raises(MemlabError, match="other lanes"):
        together([rows, dataclasses.replace(rows, frame=rows.frame.drop("z linear"))])
