from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.models.local.adapter import (
    PROJECTION,
    apply_update,
    low_rank,
    token_dimensions,
    update_digest,
    write_update,
)

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
    assert update_digest(files[0]) == update_digest(files[1])


def test_a_map_of_token_vectors_is_returned(tmp_path: Path) -> None:
    file = written(tmp_path, low_rank(BASE, TUNED, 2) | {PROJECTION: np.eye(3, 5, dtype=np.float16)})
    found = apply_update(Model(BASE), file)
    assert found is not None
    np.testing.assert_array_equal(found, np.eye(3, 5))
    assert token_dimensions(file) == 3
    assert token_dimensions(written(tmp_path, low_rank(BASE, TUNED, 2))) is None


@pytest.mark.parametrize(("weights", "message"), [
    ({"layer.bias": np.zeros(6), "other.weight": np.ones((2, 2))}, "holds 2 weights that this model lacks, layer.wei"),
    (BASE | {"layer.bias": np.zeros(4)}, r"layer.bias has the shape \(6,\), and this model's \(4,\)")])
def test_an_update_of_another_model_is_refused(weights: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(MemlabError, match=message):
        apply_update(Model(weights), written(tmp_path, low_rank(BASE, TUNED, 2)))


def test_a_file_of_another_form_is_named(tmp_path: Path) -> None:
    (tmp_path / "u").write_text("no tensors")
    with pytest.raises(MemlabError, match="is no file of safetensors"):
        apply_update(SimpleNamespace(), tmp_path / "u")
    with pytest.raises(MemlabError, match="cannot be read"):
        update_digest(tmp_path / "gone")
