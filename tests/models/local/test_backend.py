"""Devices, number formats and attention kernels, on a machine that says it has GPUs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from memlab.models.local.backend import free_bytes, one_thread, resolve
from memlab.models.local.embedder import SentenceEmbedder
from memlab.models.local.late_interaction import LateInteraction
from memlab.models.protocols import on_gpu
from memlab.stages.search.hits import digits_of
from memlab.support.errors import MemlabError


def model(folder: Path, **config: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_one_gpu_can_be_named(gpus: dict[str, Any]) -> None:
    assert resolve("auto", "auto", "auto").devices == resolve("cuda", "auto", "auto").devices == ("cuda:0", "cuda:1")
    assert resolve("cuda:1", "auto", "auto").devices == ("cuda:1",)
    with pytest.raises(MemlabError, match=r"device=cuda:2, .* sees 2 GPUs"):
        resolve("cuda:2", "auto", "auto")


@pytest.mark.parametrize(("config", "capability", "dtype"), [
    ({"dtype": "bfloat16"}, (9, 0), "bf16"), ({"torch_dtype": "bfloat16"}, (8, 0), "bf16"),
    ({"dtype": "bfloat16"}, (7, 5), "fp32"),  # its activations may overflow fp16
    ({"dtype": "float32", "model_type": "bert"}, (9, 0), "fp16"), ({"model_type": "xlm-roberta"}, (9, 0), "fp16"),
    ({"dtype": "float32", "model_type": "gemma3_text"}, (9, 0), "bf16"),
    ({"dtype": "float32", "model_type": "modernbert"}, (9, 0), "bf16"),
    ({"text_config": {"dtype": "bfloat16"}}, (9, 0), "bf16"),
])
def test_the_number_format_is_the_one_the_model_wants(
    config: dict[str, Any], capability: tuple[int, int], dtype: str, gpus: dict[str, Any], tmp_path: Path
) -> None:
    gpus["capability"] = capability
    folder = model(tmp_path / "model", **config)
    assert resolve("auto", "auto", "auto", folder).dtype == dtype
    assert resolve("auto", "fp32", "auto", folder).dtype == "fp32"
    assert resolve("cpu", "auto", "auto", folder).dtype == "fp32"


def test_a_config_in_a_module_folder_is_read(gpus: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text("[]")
    model(tmp_path / "0_Transformer", dtype="bfloat16")
    assert resolve("auto", "auto", "auto", tmp_path).dtype == "bf16"
    (tmp_path / "0_Transformer" / "config.json").write_text("no json")
    resolve.cache_clear()
    assert resolve("auto", "auto", "auto", tmp_path).dtype == "fp16"


def test_a_model_says_whether_it_runs_on_a_gpu(gpus: dict[str, Any]) -> None:
    for device, there in {"auto": True, "cuda:1": True, "cpu": False}.items():
        embedder = SentenceEmbedder(device=device)
        assert on_gpu(embedder) == on_gpu(LateInteraction(embedder=embedder)) == there
    assert not on_gpu(object())


@pytest.mark.parametrize(("fields", "place", "digits"), [
    ({}, ("cuda:0", "fp16"), 3), ({"device": "cuda:1"}, ("cuda:1", "fp16"), 3),
    ({"dtype": "bf16"}, ("cuda:0", "fp16"), 2), ({"dtype": "fp32"}, ("cuda:0", "fp32"), 6),
    ({"device": "cpu"}, ("cpu", "fp32"), 6), ({"device": "cpu", "dtype": "bf16"}, ("cpu", "fp32"), 2)])
def test_token_vectors_are_matched_where_the_encoder_runs_in_half_where_it_does_so_on_a_gpu(
    fields: dict[str, Any], place: tuple[str, str], digits: int, gpus: dict[str, Any]
) -> None:
    """The identity says so, and scores are rounded as coarsely as the coarser of the two formats."""
    late = LateInteraction(embedder=SentenceEmbedder(**fields))
    assert late.matches_on() == place
    assert late.identity()["embedder"] == late.embedder.identity()
    assert late.identity().get("products", "fp32") == place[1]
    assert digits_of(late) == digits


def test_memory_of_tensors_that_are_gone_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    for name, value in {"mem_get_info": (100, 1000), "memory_reserved": 70, "memory_allocated": 30}.items():
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    assert free_bytes("cuda:1") == 140
    assert free_bytes("cpu") == 0


def test_little_is_computed_on_one_thread() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with one_thread():
        assert torch.get_num_threads() == 1
        with one_thread(False):
            assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
