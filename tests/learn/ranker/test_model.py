from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.learn.fits import save
from memlab.learn.ranker.model import Recipe, apply, fit, load
from memlab.support.errors import MemlabError
from tests.learn.ranker.worlds import RECIPE, world


def test_evidence_comes_first_on_questions_that_the_fit_has_not_seen() -> None:
    frame, label = world()
    model = fit(frame, label, depth=20, recipe=RECIPE)
    other, truth = world(seed=1)
    scored = other.with_columns(score=pl.Series(apply(model, other)), label=pl.Series(truth))
    firsts = scored.sort("score", descending=True).group_by("question").first()
    assert firsts["label"].mean() > .9
    assert (model.questions, model.features) == (60, ("good", "noise"))


def test_candidates_beyond_the_pool_teach_nothing() -> None:
    frame, label = world()
    recipe = Recipe(trees=5, smallest_leaf=5, pool=10)
    beyond = np.arange(len(label)) % 20 >= 10
    assert fit(frame, label, 20, recipe) == fit(frame, np.where(beyond, 1 - label, label), 20, recipe)


def test_a_saved_fit_needs_no_lightgbm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame, label = world()
    model = fit(frame, label, 20, RECIPE)
    save(model, tmp_path / "fit.json")
    monkeypatch.setitem(sys.modules, "lightgbm", None)  # its import fails
    assert (apply(load(tmp_path / "fit.json"), frame) == apply(model, frame)).all()
    with pytest.raises(MemlabError, match=r"memlab\[learn\]"):
        fit(frame, label, 20, RECIPE)


def test_nothing_to_learn_and_missing_features_are_named() -> None:
    frame, label = world()
    with pytest.raises(MemlabError, match="no question has evidence"):
        fit(frame, np.zeros_like(label), 20, RECIPE)
    with pytest.raises(MemlabError, match="good"):
        apply(fit(frame, label, 20, RECIPE), frame.drop("good"))


@pytest.mark.parametrize("changes", [
    {"format": "memlab-ranker-0"}, {"level": "word"}, {"more": 1}, {"features": ["good", "good"]}, {"trees": [1]},
    {"recipe": {"trees": True}}, {"gains": [1.0]}, {"gains": [1.0, -1.0]}, {"encoder": 3}, {"data": None},
    {"trees": [{"threshold": "1 2 3"}]}, {"features": ["good"], "gains": [1.0]}])
def test_a_damaged_file_is_named(changes: dict[str, Any], tmp_path: Path) -> None:
    frame, label = world()
    file = tmp_path / "fit.json"
    save(fit(frame, label, 20, RECIPE), file)
    load(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))
    with pytest.raises(MemlabError, match="is not a ranking model") as error:
        load(file)
    assert str(file) in str(error.value)
