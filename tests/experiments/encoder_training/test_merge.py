"""Updates of one encoder merged into one: sums recomputed by hand, refusals, records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_training.__main__ import main
from encoder_training.merge import MergeRecipe, merge

from memlab.models.local.adapter import PROJECTION, low_rank, read_update, write_update
from memlab.models.local.base import learned_questions
from memlab.support.errors import MemlabError

pytestmark = pytest.mark.nightly

RNG = np.random.default_rng(5)
SHAPES = {"w": (6, 5), "only_first": (4, 4), "bias": (6,)}


def changes(*names: str) -> dict[str, np.ndarray]:
    """Return a change of each weight, matrices of rank 2."""
    return {name: RNG.normal(size=SHAPES[name]) if len(SHAPES[name]) == 1 else
            RNG.normal(size=(SHAPES[name][0], 2)) @ RNG.normal(size=(2, SHAPES[name][1])) for name in names}


def written(folder: Path, change: dict[str, np.ndarray], base: str = "base", **more: np.ndarray) -> Path:
    """Write an update, and a record of a training on the question ``NAME of the folder``; return the update's file."""
    folder.mkdir(parents=True)
    update = low_rank({name: np.zeros_like(value) for name, value in change.items()}, change, 4)
    write_update(folder / "update.safetensors", update | more, {"base": base, "rank": 4})
    (folder / "training.json").write_text(json.dumps({"sources": [{"learnt": [folder.name]}]}))
    return folder / "update.safetensors"


def change_of(file: Path, name: str) -> np.ndarray:
    _, tensors = read_update(file)
    whole = tensors.get(f"{name}.add")
    return whole if whole is not None else tensors[f"{name}.up"].astype(float) @ tensors[f"{name}.down"].astype(float)


def test_changes_are_added_times_their_factors_and_their_questions_are_known(tmp_path: Path) -> None:
    first, second = changes("w", "only_first", "bias"), changes("w", "bias")
    a, b = written(tmp_path / "a", first), written(tmp_path / "b", second)
    words = ["merge", f"updates={{{a}: 0.5, {b}: 2.0}}", f"out_model={tmp_path / 'm'}", "rank=4"]
    assert main(words) == 0
    file = tmp_path / "m" / "update.safetensors"
    content = file.read_bytes()
    np.testing.assert_allclose(change_of(file, "w"), 0.5 * first["w"] + 2 * second["w"], atol=0.05)
    np.testing.assert_allclose(change_of(file, "only_first"), 0.5 * first["only_first"], atol=0.02)
    np.testing.assert_allclose(change_of(file, "bias"), 0.5 * first["bias"] + 2 * second["bias"], atol=0.02)
    assert read_update(file)[0].base == "base"
    assert learned_questions(tmp_path / "m") == {"a", "b"}
    assert main(words) == 0
    assert file.read_bytes() == content
    assert main([*words[:-1], "rank=3"]) == 1  # another merge is in the folder
    assert main([*words, "data=synthetic"]) == 2


def test_a_matrix_is_the_nearest_of_its_rank(tmp_path: Path) -> None:
    first, second = changes("w"), changes("w")
    a, b = written(tmp_path / "a", first), written(tmp_path / "b", second)
    merge(MergeRecipe(updates={a: 1.0, b: 1.0}, out_model=tmp_path / "m", rank=3))
    found = change_of(tmp_path / "m" / "update.safetensors", "w")
    values = np.linalg.svd(first["w"] + second["w"], compute_uv=False)
    left = np.linalg.norm(first["w"] + second["w"] - found)
    assert left == pytest.approx(float(np.sqrt((values[3:] ** 2).sum())), rel=0.02)
    assert np.linalg.matrix_rank(found, tol=1e-6) == 3


@pytest.mark.parametrize(("second", "fault"), [
    ({"base": "other"}, "was trained from other weights"),
    ({PROJECTION: np.ones((2, 5), np.float16)}, "maps cannot be added")])
def test_updates_that_do_not_fit_together(tmp_path: Path, second: dict[str, Any], fault: str) -> None:
    a, b = written(tmp_path / "a", changes("w")), written(tmp_path / "b", changes("w"), **second)
    with pytest.raises(MemlabError, match=fault):
        merge(MergeRecipe(updates={a: 1.0, b: 1.0}, out_model=tmp_path / "m"))
    assert not (tmp_path / "m").exists()
