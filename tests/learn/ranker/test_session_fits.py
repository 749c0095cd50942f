from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.errors import MemlabError
from memlab.learn.ranker.model import apply_fits, load, save
from memlab.learn.ranker.session_fits import Learnable, crossfit_both, fit_both, together, values
from memlab.learn.ranker.sessions import fit_sessions
from memlab.learn.ranker.stage import rescored
from tests.learn.ranker.worlds import RECIPE, first, learned, searched

pytest.importorskip("lightgbm")


def learnable() -> Learnable:
    return learned(folds=4).learnable(first())


def test_a_session_holds_evidence_if_any_of_its_turns_does() -> None:
    rows = learnable()
    assert rows.held[rows.label > 0].all()
    assert rows.held.sum() > rows.label.sum()
    assert not rows.held.all()


def test_no_label_of_a_fold_reaches_its_session_model() -> None:
    rows = learnable()
    mine = rows.fold == 1
    other = dataclasses.replace(rows, label=np.where(mine, 1 - rows.label, rows.label).astype(np.int32),
                                held=np.where(mine, ~rows.held, rows.held))
    one, two = ({int(rows.fold[part][0]): model for part, model in crossfit_both(r, 40, RECIPE)} for r in (rows, other))
    assert one[1] == two[1]
    assert one[1].sessions is not None
    assert one[0].sessions != two[0].sessions


def test_the_turns_that_a_session_model_learns_from_are_scored_out_of_fold() -> None:
    """With scores of trees that have seen the questions, the weight of the learned score would be larger."""
    rows = learnable()
    everything = np.ones(len(rows.fold), np.bool_)
    model = fit_both(rows, 40, RECIPE)
    assert model.sessions is not None
    seen = apply_fits([(everything, model)], rows.frame)
    assert fit_sessions(*rows.sessions(everything, seen)).weights[0] > model.sessions.weights[0]


def test_there_is_no_session_model_with_two_folds_or_no_places() -> None:
    rows = learnable()
    two = dataclasses.replace(rows, fold=rows.fold % 2, shared=rows.shared[:2])
    none = dataclasses.replace(RECIPE, places=0)
    for fits in (crossfit_both(two, 40, RECIPE), crossfit_both(rows, 40, none)):
        assert all(model.sessions is None for _, model in fits)
        assert values(fits, rows.frame, rows.session, apply_fits(fits, rows.frame)) is None
    assert fit_both(rows, 40, none).sessions is None


def test_the_first_sessions_of_a_ranking_are_those_of_highest_value() -> None:
    rows = learnable()
    fits = crossfit_both(rows, 40, RECIPE)
    scores = apply_fits(fits, rows.frame)
    by_session = values(fits, rows.frame, rows.session, scores)
    assert by_session is not None
    ranking = rescored(first()["ranking"], rows.frame, scores, 40, by_session, 2)
    best = by_session.sort("question", "value", descending=[False, True], maintain_order=True).group_by(
        "question", maintain_order=True).first()
    firsts = ranking.filter(pl.col("rank") == 1).join(first()["units"].select("unit", "session"), on="unit")
    both = best.join(firsts, on="question", suffix="_first")
    ties = by_session.join(best.select("question", "value"), on=["question", "value"]).select(
        "question", "session").unique().group_by("question").len().filter(pl.col("len") == 1)
    single = both.join(ties, on="question", how="semi")
    assert single.height > both.height / 2
    assert (single["session"] == single["session_first"]).all()
    plain = rescored(first()["ranking"], rows.frame, scores, 40)
    assert not plain["unit"].equals(ranking["unit"])
    assert plain["score"].equals(ranking["score"])


def test_a_saved_fit_carries_its_session_model(tmp_path: Path) -> None:
    model = fit_both(learnable(), 40, RECIPE)
    save(model, tmp_path / "fit.json")
    assert load(tmp_path / "fit.json") == model
    assert model.sessions is not None
    plain = dataclasses.replace(model, sessions=None)
    save(plain, tmp_path / "plain.json")
    one, two = (learned(model=tmp_path / name).run(searched(), None) for name in ("fit.json", "plain.json"))  # type: ignore[arg-type]
    assert not one["ranking"]["unit"].equals(two["ranking"]["unit"])


def test_data_sets_are_put_together_with_questions_of_their_own() -> None:
    rows = learnable()
    both = together([rows, rows])
    assert both.frame["question"].n_unique() == 2 * rows.frame["question"].n_unique()
    assert both.shared.shape == (4, 2 * rows.frame.height)
    with pytest.raises(MemlabError, match="other lanes"):
        together([rows, dataclasses.replace(rows, frame=rows.frame.drop("z linear"))])
