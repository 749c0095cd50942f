from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from memlab.learn.fits import save
from memlab.learn.ranker.cross_fit import apply_fits, crossfit
from memlab.learn.ranker.model import Recipe, apply, fit, load
from memlab.support.errors import MemlabError

RECIPE = Recipe(trees=20, smallest_leaf=5, share=1.0)


def world(seed: int = 0, questions: int = 60, pool: int = 20) -> tuple[pl.DataFrame, np.ndarray]:
    """Candidates whose evidence has the highest ``good``; ``noise`` tells nothing."""
    rng = np.random.default_rng(seed)
    n = questions * pool
    frame = pl.DataFrame({"question": np.repeat(np.arange(questions), pool), "unit": np.arange(n),
                          "good": rng.normal(size=n), "noise": rng.normal(size=n)})
    best = pl.col("good").rank("ordinal", descending=True).over("question") <= 2
    return frame, frame.select(best.cast(pl.Int32)).to_series().to_numpy()


def test_evidence_comes_first_on_questions_that_the_fit_has_not_seen() -> None:
    frame, label = world()
    model = fit(frame, label, depth=20, recipe=RECIPE, data=("lives",))
    other, truth = world(seed=1)
    scored = other.with_columns(score=pl.Series(apply(model, other)), label=pl.Series(truth))
    firsts = scored.sort("score", descending=True).group_by("question").first()
    assert firsts["label"].mean() > .9
    assert (model.questions, model.data, model.features) == (60, ("lives",), ("good", "noise"))


def test_a_negative_that_the_held_out_fold_shares_teaches_nothing() -> None:
    frame, label = world()
    fold = (frame["question"].to_numpy() % 3).astype(np.int32)
    shared = np.zeros((3, len(label)), bool)
    shared[1, :400] = True
    before = apply_fits(crossfit(frame, label, fold, 20, RECIPE, shared), frame)
    bad = pl.Series(shared[1] & (label == 0) & (fold != 1))
    moved = frame.with_columns(good=pl.when(bad).then(9.0).otherwise("good"))
    after = apply_fits(crossfit(moved, label, fold, 20, RECIPE, shared), moved)
    assert (before[fold == 1] == after[fold == 1]).all()
    assert (apply_fits(crossfit(moved, label, fold, 20, RECIPE), moved)[fold == 1] != before[fold == 1]).any()
    evidence = pl.Series(shared[1] & (label > 0) & (fold != 1))
    moved = frame.with_columns(good=pl.when(evidence).then(-9.0).otherwise("good"))
    assert (apply_fits(crossfit(moved, label, fold, 20, RECIPE, shared), moved)[fold == 1] != before[fold == 1]).any()


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
    {"recipe": {"trees": True}}, {"gains": [1.0]}, {"gains": [1.0, -1.0]}, {"sessions": 3}, {"data": None},
    {"tree": {"split_feature": [10**6]}}, {"tree": {"left_child": [0]}}, {"tree": {"threshold": "1 2 3"}},
    {"tree": {"leaf_value": [float("nan")]}}, {"tree": {"leaf_count": [1]}}])
def test_a_damaged_file_is_named(changes: dict[str, Any], tmp_path: Path) -> None:
    """What is changed in the first tree takes the place of the first numbers of a list."""
    frame, label = world()
    file = tmp_path / "fit.json"
    save(fit(frame, label, 20, RECIPE), file)
    load(file)
    content = json.loads(file.read_text())
    for name, value in changes.pop("tree", {}).items():
        old = content["trees"][0].get(name, [])
        content["trees"][0][name] = value + old[len(value):] if isinstance(value, list) else value
    file.write_text(json.dumps(content | changes))
    with pytest.raises(MemlabError, match="is not a ranking model") as error:
        load(file)
    assert str(file) in str(error.value)
