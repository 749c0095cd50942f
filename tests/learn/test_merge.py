"""Updates of one encoder merged into one: sums recomputed by hand, refusals, records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.learn.__main__ import main as train_main
from memlab.learn.merge import MergeRecipe, merge
from memlab.models.local.adapter import PROJECTION, low_rank, read_update, write_update
from memlab.models.local.base import learned_questions

RNG = np.random.default_rng(5)
SHAPES = {"w": (6, 5), "only_first": (4, 4), "bias": (6,)}


def changes(names: list[str], rank: int = 2) -> dict[str, np.ndarray]:
    """Return a change of each weight, matrices of a low rank."""
    return {name: RNG.normal(size=SHAPES[name]) if len(SHAPES[name]) == 1 else
            RNG.normal(size=(SHAPES[name][0], rank)) @ RNG.normal(size=(rank, SHAPES[name][1])) for name in names}


def written(folder: Path, change: dict[str, np.ndarray], base: str = "base", learnt: tuple[str, ...] = (),
            **more: np.ndarray) -> Path:
    """Write an update, and a record of its training where questions were learned; return the update's file."""
    folder.mkdir(parents=True)
    update = low_rank({name: np.zeros_like(value) for name, value in change.items()}, change, 4)
    write_update(folder / "update.safetensors", update | more, {"base": base, "rank": 4})
    if learnt:
        (folder / "training.json").write_text(json.dumps({"sources": [{"learnt": list(learnt)}]}))
    return folder / "update.safetensors"


def change_of(file: Path, name: str) -> np.ndarray:
    _, tensors = read_update(file)
    whole = tensors.get(f"{name}.add")
    return whole if whole is not None else tensors[f"{name}.up"].astype(float) @ tensors[f"{name}.down"].astype(float)


def test_changes_are_added_times_their_factors(tmp_path: Path) -> None:
    first, second = changes(["w", "only_first", "bias"]), changes(["w", "bias"])
    a, b = written(tmp_path / "a", first), written(tmp_path / "b", second)
    merge(MergeRecipe(updates={a: 0.5, b: 2.0}, out_model=tmp_path / "m", rank=4))
    file = tmp_path / "m" / "update.safetensors"
    np.testing.assert_allclose(change_of(file, "w"), 0.5 * first["w"] + 2 * second["w"], atol=0.05)
    np.testing.assert_allclose(change_of(file, "only_first"), 0.5 * first["only_first"], atol=0.02)
    np.testing.assert_allclose(change_of(file, "bias"), 0.5 * first["bias"] + 2 * second["bias"], atol=0.02)
    assert read_update(file)[0].base == "base"


def test_a_matrix_is_the_nearest_of_its_rank(tmp_path: Path) -> None:
    first, second = changes(["w"]), changes(["w"])
    a, b = written(tmp_path / "a", first), written(tmp_path / "b", second)
    merge(MergeRecipe(updates={a: 1.0, b: 1.0}, out_model=tmp_path / "m", rank=3))
    found = change_of(tmp_path / "m" / "update.safetensors", "w")
    values = np.linalg.svd(first["w"] + second["w"], compute_uv=False)
    left = np.linalg.norm(first["w"] + second["w"] - found)
    assert left == pytest.approx(float(np.sqrt((values[3:] ** 2).sum())), rel=0.02)
    assert np.linalg.matrix_rank(found, tol=1e-6) == 3


def test_the_record_knows_what_the_updates_learned(tmp_path: Path) -> None:
    a = written(tmp_path / "a", changes(["w"]), learnt=("x", "y"))
    b = written(tmp_path / "b", changes(["w"]), learnt=("z",))
    c = written(tmp_path / "c", changes(["w"]))
    recipe = MergeRecipe(updates={a: 1.0, b: 1.0, c: 0.5}, out_model=tmp_path / "m")
    record = merge(recipe)
    assert learned_questions(tmp_path / "m") == {"x", "y", "z"}
    assert [(one["update"], one["factor"]) for one in record["merged"]] == [
        (read_update(file)[0].digest, factor) for file, factor in ((a, 1.0), (b, 1.0), (c, 0.5))]
    content = (tmp_path / "m" / "update.safetensors").read_bytes()
    assert merge(recipe) == record  # finished: nothing is written again
    again = MergeRecipe(updates={a: 1.0, b: 1.0, c: 0.5}, out_model=tmp_path / "n")
    merge(again)
    assert (tmp_path / "n" / "update.safetensors").read_bytes() == content
    with pytest.raises(MemlabError, match="holds something else"):
        merge(MergeRecipe(updates={a: 1.0}, out_model=tmp_path / "m"))


@pytest.mark.parametrize(("second", "fault"), [
    ({"base": "other"}, "were trained from different weights"),
    ({PROJECTION: np.ones((2, 5), np.float16)}, "maps cannot be added"),
])
def test_updates_that_do_not_fit_together(tmp_path: Path, second: dict[str, Any], fault: str) -> None:
    a, b = written(tmp_path / "a", changes(["w"])), written(tmp_path / "b", changes(["w"]), **second)
    with pytest.raises(MemlabError, match=fault):
        merge(MergeRecipe(updates={a: 1.0, b: 1.0}, out_model=tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_an_update_counts_once_and_not_against_itself(tmp_path: Path) -> None:
    change = changes(["w"])
    a, same, opposite = (written(tmp_path / name, {"w": sign * change["w"]})
                         for name, sign in (("a", 1), ("b", 1), ("c", -1)))
    for updates, fault in (({a: 1.0, same: 1.0}, "is the same update as another one"),
                           ({a: 1.0, opposite: 1.0}, "cancel each other out")):
        with pytest.raises(MemlabError, match=fault):
            merge(MergeRecipe(updates=updates, out_model=tmp_path / "m"))
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("name", ["w", "bias"])
@pytest.mark.parametrize(("factor", "fault"), [
    (0.0, "changes nothing at the factor 0"), (1e-320, "changes nothing at the factor"), (-1e-12, "changes nothing at"),
    (1e30, "changes by more than fp16 holds .*Fix: smaller factors"), (-1e308, "not finite. Fix: smaller factors")])
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.filterwarnings("error")
def test_a_factor_without_effect_or_beyond_all_weights_is_refused(tmp_path: Path, name: str, factor: float, fault: str,
                                                                  beside: bool) -> None:
    other, tried = written(tmp_path / "a", changes([name])), written(tmp_path / "b", {name: 30 * changes([name])[name]})
    with pytest.raises(MemlabError, match=fault):
        merge(MergeRecipe(updates={other: 1.0, tried: factor} if beside else {tried: factor}, out_model=tmp_path / "m"))
    assert not (tmp_path / "m").exists()


def test_a_small_factor_that_changes_some_weight_is_taken(tmp_path: Path) -> None:
    a, b = written(tmp_path / "a", {"w": np.eye(6, 5)}), written(tmp_path / "b", {"bias": np.ones(6)})
    merge(MergeRecipe(updates={a: 1e-3, b: 1e-6}, out_model=tmp_path / "m"))
    np.testing.assert_allclose(change_of(tmp_path / "m" / "update.safetensors", "bias"), 1e-6, rtol=.05)


def test_matrices_of_different_shapes(tmp_path: Path) -> None:
    a, b = written(tmp_path / "a", changes(["w"])), written(tmp_path / "b", {"w": RNG.normal(size=(3, 3))})
    with pytest.raises(MemlabError, match=r"w has the shape \(3, 3\), and \(6, 5\) in another"):
        merge(MergeRecipe(updates={a: 1.0, b: 1.0}, out_model=tmp_path / "m"))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = written(tmp_path / "a", changes(["w"])), written(tmp_path / "b", changes(["w"]))
    words = [f"updates={{{a}: 0.6, {b}: 0.6}}", f"out_model={tmp_path / 'm'}"]
    assert train_main(["merge", *words]) == 0
    assert "2 updates in one of rank 32" in capsys.readouterr().out
    assert train_main(["merge", "--help"]) == 0
    assert "the factor of each" in capsys.readouterr().out
    assert train_main(["merge", *words, "data=synthetic"]) == 2
    assert train_main(["merge", "updates={}", f"out_model={tmp_path / 'n'}"]) == 2
    assert train_main(["merge", f"updates={{{tmp_path / 'no'}: 1}}", f"out_model={tmp_path / 'n'}"]) == 1
    assert train_main(["merge", f"updates={{{a}: nan}}", f"out_model={tmp_path / 'n'}"]) == 2
    assert train_main(["merge", f"updates={{{a}: 0.6}}", f"out_model={a / 'n'}"]) == 1
    error = capsys.readouterr().err
    assert "a file is there, where a folder is needed" in error
    assert "finite number" in error
    assert "merging has no such setting" in error
    assert "cannot be read" in error
