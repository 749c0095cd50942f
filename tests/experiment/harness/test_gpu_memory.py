"""Memory of models on GPUs, computed by hand: what a plan prints, and what a run refuses."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from memlab.experiment.harness import gpu_memory
from memlab.experiment.harness.gpu_memory import (
    ACTIVATIONS,
    CUDA_GB,
    UNKNOWN_GB,
    LoadedModel,
    check_memory,
    loaded_models,
    local_servers,
    needed_gb,
    print_memory,
    size,
)
from memlab.experiment.harness.sweep import Sweep, read
from memlab.models.local import base
from memlab.models.local.base import token_width, weight_count
from memlab.models.local.embedder import SentenceEmbedder
from memlab.support.errors import Faults, MissingFiles
from tests.small import LIVES

TEXT = 8192 * ACTIVATIONS * 1024 * 2 / 1e9
"""A text of 8,192 tokens, of so many arrays of 1,024 numbers in fp16."""


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has no model of the hub, whatever its cache holds."""
    def missing(path: str | Path, revision: str | None, option: str) -> Path:
        raise MissingFiles(f"no {path}", fix=f"{option}=FOLDER")

    monkeypatch.setattr(base, "model_folder", missing)
    size.cache_clear()


def sweep(*words: str) -> Sweep:
    return read(["+profile=gpu", *words, *LIVES, "track=none", "plan=true"])


def test_a_run_needs_its_weights_one_text_and_cuda() -> None:
    models = [LoadedModel("encoder a", 2.0, .2, "auto"), LoadedModel("reranker b", None, .1, "auto")]
    assert needed_gb(models) == 2.0 + UNKNOWN_GB + .2 + CUDA_GB


def test_sizes_come_from_files_or_from_the_settings_of_served_models() -> None:
    minilm = size(SentenceEmbedder())
    assert minilm[1] == 384
    assert minilm[0] == pytest.approx(22.7e6 * 2 / 1e9, rel=.01)  # 22.7 million weights, 2 bytes each on a GPU
    assert size(SentenceEmbedder(path="BAAI/bge-m3", name="bge-m3")) == (1.1, 1024)
    assert size(SentenceEmbedder(path="BAAI/bge-m3", name="bge-m3", dtype="fp32")) == (2.2, 1024)
    assert size(SentenceEmbedder(path="someone/else", name="else")) == (None, None)


def test_the_models_of_the_profile_and_its_server_are_printed() -> None:
    planned = sweep()
    assert loaded_models(planned.arms) == [  # the reranker reads 1,024 tokens of a pair
        LoadedModel("encoder bge-m3", 1.1, TEXT, "auto"),
        LoadedModel("reranker bge-reranker-v2-m3", 1.1, TEXT / 8, "auto")]
    out = io.StringIO()
    print_memory(planned.settings, planned.arms, Console(file=out, width=300))
    assert out.getvalue().splitlines() == [
        "GPU: the models of the run need 3.0 GB or more (encoder bge-m3 1.1, reranker bge-reranker-v2-m3 1.1); more "
        "room makes larger batches",
        "GPU: the server of qwen2.5-7b needs 18.6 GB: start it first by memlab serve qwen2.5-7b --detach"]


def test_models_on_the_cpu_and_servers_elsewhere_do_not_count() -> None:
    arms = sweep("embedder.device=cpu", "chat.url=https://elsewhere.net/v1").arms
    assert [model.label for model in loaded_models(arms)] == ["reranker bge-reranker-v2-m3"]
    assert local_servers(arms) == []


def test_a_run_that_does_not_fit_into_free_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    arms, free, count = sweep().arms, [4000, 4000], 2
    monkeypatch.setattr(gpu_memory, "gpu_count", lambda: count)
    monkeypatch.setattr(gpu_memory.environment, "free_memory", lambda: free)
    check_memory(arms)
    free[1] = 2800
    with pytest.raises(Faults, match=r"GPU 1: 2\.9 GB are free, and the models of this run need 3\.0 GB or more there"):
        check_memory(arms)
    free.pop()  # cards that are cut in parts do not say how much of each is free
    check_memory(arms)
    count = 0
    check_memory(arms)


@pytest.mark.parametrize("content", [
    b"", b"\xff" * 9, (3).to_bytes(8, "little") + b"[1]", (2).to_bytes(8, "little") + b"{}"])
def test_weights_that_cannot_be_counted_are_of_unknown_size(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    assert weight_count(tmp_path) is None
    (tmp_path / "config.json").write_text("{")
    assert token_width(tmp_path) is None
    (tmp_path / "config.json").write_text('{"text_config": {"hidden_size": 768}}')
    assert token_width(tmp_path) == 768
