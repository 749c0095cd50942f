from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

from memlab.models.local import adapter
from memlab.models.local.adapter import (
    PROJECTION,
    apply_update,
    low_rank,
    read_update,
    update_card,
    update_file,
    write_update,
)
from memlab.models.local.base import files_digest
from memlab.models.local.embedder import SentenceEmbedder
from memlab.support.errors import MemlabError
from memlab.support.paths import bundled_encoder, shipped_path

RNG = np.random.default_rng(0)
BASE = {"layer.weight": RNG.normal(size=(6, 5)), "layer.bias": RNG.normal(size=6), "other.weight": np.ones((2, 2))}
TUNED = BASE | {"layer.weight": BASE["layer.weight"] + RNG.normal(size=(6, 5)) / 100,
                "layer.bias": BASE["layer.bias"] + .25}


class Model:
    """The named weights of a model."""

    def __init__(self, weights: dict[str, Any]) -> None:
        import torch

        self.weights = {name: torch.tensor(weight, dtype=torch.float32) for name, weight in weights.items()}

    def named_parameters(self) -> Any:
        return self.weights.items()


def written(folder: Path, update: dict[str, Any]) -> Path:
    write_update(folder / "u.safetensors", update, {"rank": 2})
    return folder / "u.safetensors"


def test_an_update_of_full_rank_gives_the_trained_weights(tmp_path: Path) -> None:
    update = low_rank(BASE, TUNED, 5)
    assert not [name for name in update if name.startswith("other")]  # what did not change is left out
    model = Model(BASE)
    assert apply_update(model, written(tmp_path, update)) is None
    for name, weight in TUNED.items():
        np.testing.assert_allclose(model.weights[name], weight, atol=2e-5)


def test_a_lower_rank_is_the_truncated_decomposition_of_the_change() -> None:
    update = low_rank(BASE, TUNED, 2)
    left, values, right = np.linalg.svd(TUNED["layer.weight"] - BASE["layer.weight"])
    nearest = left[:, :2] * values[:2] @ right[:2]
    np.testing.assert_allclose(update["layer.weight.up"].astype(float) @ update["layer.weight.down"], nearest,
                               atol=1e-4)
    assert (update["layer.weight.up"].shape, update["layer.weight.down"].shape) == ((6, 2), (2, 5))


def test_equal_updates_are_equal_files(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.mkdir()
    two.mkdir()
    update = low_rank(BASE, TUNED, 2)
    files = written(one, update), written(two, dict(reversed(update.items())))
    assert files[0].read_bytes() == files[1].read_bytes()
    assert update_card(files[0]).digest == update_card(files[1]).digest


def test_a_map_of_token_vectors_is_returned(tmp_path: Path) -> None:
    file = written(tmp_path, low_rank(BASE, TUNED, 2) | {PROJECTION: np.eye(3, 5, dtype=np.float16)})
    found = apply_update(Model(BASE), file)
    assert found is not None
    np.testing.assert_array_equal(found, np.eye(3, 5))
    assert update_card(file).dimensions == 3
    assert update_card(written(tmp_path, low_rank(BASE, TUNED, 2))).dimensions is None


@pytest.mark.parametrize(("weights", "message"), [
    ({"layer.bias": np.zeros(6), "other.weight": np.ones((2, 2))}, "changes layer.weight, which this model lacks"),
    (BASE | {"layer.bias": np.zeros(4)}, r"layer.bias has the shape \(6,\), and this model's \(4,\)")])
def test_an_update_of_another_model_is_refused_and_changes_nothing(
        weights: dict[str, Any], message: str, tmp_path: Path) -> None:
    model = Model(weights)
    with pytest.raises(MemlabError, match=message):
        apply_update(model, written(tmp_path, low_rank(BASE, TUNED, 2)))
    for name, weight in weights.items():
        np.testing.assert_allclose(model.weights[name], weight, atol=1e-6)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_an_update_is_added_in_single_precision(kind: str, tmp_path: Path) -> None:
    """Between two numbers of 16 bits that are 2 apart, 1.0005 more gives the upper; 1.0005 cut to 16 bits is 1."""
    import torch

    start = {"float16": 2048, "bfloat16": 256}[kind]
    up, down = np.full((1, 1), 1 + 2**-10, np.float16), np.full((1, 1), 1 - 2**-11, np.float16)
    model = Model({})
    model.weights = {"w": torch.full((1, 1), start, dtype=getattr(torch, kind))}
    apply_update(model, written(tmp_path, {"w.up": up, "w.down": down}))
    assert model.weights["w"].dtype == getattr(torch, kind)
    assert model.weights["w"].item() == start + 2


def test_a_sum_beyond_the_number_format_is_refused(tmp_path: Path) -> None:
    import torch

    model = Model({})
    model.weights = {"w": torch.full((2,), 60_000, dtype=torch.float16)}
    with pytest.raises(MemlabError, match=r"w with its update is more than torch.float16 holds.*embedder.dtype=fp32"):
        apply_update(model, written(tmp_path, {"w.add": np.full(2, 60_000, np.float16)}))


@pytest.mark.parametrize(("weight", "message"), [
    (np.nan, "layer.bias holds a number that is not finite. Fix: a smaller rate"), (-np.inf, "is not finite"),
    (1e6, "layer.bias changes by more than fp16 holds")])
def test_a_training_that_diverged_gives_no_update(weight: float, message: str) -> None:
    with pytest.raises(MemlabError, match=message):
        low_rank(BASE, TUNED | {"layer.bias": np.full(6, weight)}, 2)


def stored(file: Path, tensors: dict[str, Any], notes: dict[str, str] | None = None) -> Path:
    """Write what ``write_update`` may refuse."""
    file.write_bytes(save(tensors, {"card": "{}"} if notes is None else notes))
    return file


def halves(*shape: int) -> Any:
    return np.ones(shape, np.float16)


@pytest.mark.parametrize(("tensors", "message"), [
    ({"w.up": halves(3, 2)}, "w.up is there without w.down"), ({"w.down": halves(3, 2)}, "is there without w.up"),
    ({PROJECTION: halves(3, 5) * np.float16(np.inf)}, "projection holds a number that is not finite"),
    ({"layer.weight": halves(6, 5)}, "layer.weight is no part of an update"),
    ({"a\n\x1b" + "b" * 9000: halves(6)}, r"a \\x1bb{117} is no part of an update")])
def test_contents_that_are_no_update_are_refused_by_name(tensors: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=message):
        update_card(stored(tmp_path / "u.safetensors", tensors))
    with pytest.raises(MemlabError, match=message):
        write_update(tmp_path / "w.safetensors", tensors, {})


@pytest.mark.parametrize(("notes", "message"), [
    ({}, "it has no card"), ({"card": '{"base": 3}'}, "it has no card"), ({"card": "["}, "is damaged")])
def test_a_file_without_a_card_is_no_update(notes: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=message):
        update_card(stored(tmp_path / "model.safetensors", {"w.add": halves(3)}, notes))


def huge(folder: Path) -> Path:
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    return folder / "huge"


def cut(folder: Path) -> Path:
    file = written(folder, low_rank(BASE, TUNED, 2))
    file.write_bytes(file.read_bytes()[:-7])
    return file


@pytest.mark.parametrize(("make", "message"), [
    (lambda folder: folder / "gone", "cannot be read: No such file"),
    (lambda folder: folder, "cannot be read: it is no plain file"), (huge, r"is larger than .* \(256 MB\)"),
    (cut, "is damaged, or no file of safetensors")])
def test_a_file_that_cannot_be_read_gives_one_sentence(make: Callable[[Path], Path], message: str, tmp_path: Path
                                                       ) -> None:
    file = make(tmp_path)
    with pytest.raises(MemlabError, match=message) as found:
        update_card(file)
    assert str(found.value).startswith(f"{file}: ")
    assert "Fix: give the update.safetensors" in str(found.value)


def test_a_file_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    first = update_card(written(tmp_path, {PROJECTION: halves(3, 5)})).digest
    file = written(tmp_path, {PROJECTION: halves(5, 3)})  # of the same size
    assert update_card(file).digest != first
    assert update_card(file).dimensions == 5
    with pytest.raises(MemlabError, match="changed after it was checked"):
        apply_update(Model(BASE), file, digest=first)


def test_the_shipped_update_is_small_is_of_the_embedded_encoder_and_is_the_one_of_its_card() -> None:
    file = update_file("memory")
    assert file.stat().st_size < 3e6
    card = update_card(file)
    assert card.base == files_digest(bundled_encoder())
    assert card.dimensions is None
    assert hashlib.sha256(file.read_bytes()).hexdigest() in (shipped_path("docs") / "minilm_memory.md").read_text()
    assert SentenceEmbedder(name="minilm_memory", adapter="memory").identity()["adapter"] == card.digest


def test_an_update_that_is_not_the_recorded_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / adapter.UPDATE
    digest = write_update(file, {PROJECTION: halves(3, 5)}, {"rank": 2})
    (tmp_path / adapter.RECORD).write_text(json.dumps({"update": digest}))
    assert read_update(file)[0].digest == digest
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(MemlabError, match=f"is damaged: its digest is .*, and {digest} was recorded.*Fix: copy it"):
        read_update(file)
    monkeypatch.setattr(adapter, "update_file", lambda name: file)
    with pytest.raises(MemlabError, match=f"{adapter.SHIPPED} was recorded.*install memlab again"):
        read_update(file)
