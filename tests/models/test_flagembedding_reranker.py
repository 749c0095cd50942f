"""Number formats and failures of FlagEmbedding's rerankers, with stand-ins for its classes and for a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch

from memlab.errors import MemlabError
from memlab.models import flagembedding  # noqa: E402
from memlab.models.flagembedding import FlagPairScorer
from memlab.models.local.backend import resolve


@pytest.mark.parametrize(("kind", "model_type", "made", "dtype"), [
    ("llm", "gemma", {"use_fp16": False, "use_bf16": True}, "bf16"),
    ("llm", "llama", {"use_fp16": True}, "fp16"),
    ("encoder", "xlm-roberta", {"use_fp16": True}, "fp16"),
    ("encoder", "modernbert", {"use_fp16": False}, "fp32"),  # its class for encoders knows no bf16
])
def test_a_model_that_overflows_fp16_is_not_loaded_in_it(
    kind: Literal["encoder", "llm"], model_type: str, made: dict[str, bool], dtype: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: (9, 0))
    def make(folder: str, **options: Any) -> Any:
        calls.append(options)
        return SimpleNamespace(model=torch.nn.Identity())

    monkeypatch.setattr(flagembedding, "flag_embedding",
                        lambda: SimpleNamespace(FlagReranker=make, FlagLLMReranker=make))
    resolve.cache_clear()
    flagembedding.load.cache_clear()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    scorer = FlagPairScorer(path=tmp_path, name="tiny", kind=kind)
    scorer._models()
    assert calls == [{**made, "devices": ["cuda:0"]}]
    assert scorer.identity()["dtype"] == dtype
    resolve.cache_clear()
    flagembedding.load.cache_clear()


class Shrinking:
    """A stand-in that looks for a batch size as FlagEmbedding's classes do."""

    def __init__(self, folder: str, **options: Any) -> None:
        self.model: Any = Logits()

    def compute_score(self, pairs: list[tuple[str, str]], batch_size: int, **options: Any) -> list[float]:
        rows = [[len(query), len(passage)] for query, passage in pairs]
        while True:
            try:
                self.model(input_ids=rows[:batch_size])
                break
            except RuntimeError:
                batch_size = batch_size * 3 // 4
        parts = [self.model(input_ids=rows[at:at + batch_size]) for at in range(0, len(rows), batch_size)]
        return [score for part in parts for score in part]


class Logits(torch.nn.Module):
    """Scores pairs by their lengths; ``error`` is raised for more than ``room`` pairs."""

    error: Exception | None = None
    room = 0
    sizes: ClassVar[list[int]] = []

    def forward(self, input_ids: list[list[int]]) -> list[float]:
        self.sizes.append(len(input_ids))
        assert len(self.sizes) < 50, "an endless loop"
        if self.error and len(input_ids) > self.room:
            raise self.error
        return [float(query - passage) for query, passage in input_ids]


@pytest.mark.parametrize(("error", "room", "message"), [
    (RuntimeError("CUDA error: device-side assert triggered"), 0, "the model failed: CUDA error.*device=cpu"),
    (torch.OutOfMemoryError("CUDA out of memory."), 0, "one text alone does not fit.*a smaller max_length"),
    (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4 bytes"), 0, "one text alone"),
    (RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), 0, "one text alone"),
    (torch.OutOfMemoryError("CUDA out of memory."), 1, ""), (torch.OutOfMemoryError("CUDA out of memory."), 3, "")])
def test_a_lack_of_memory_makes_smaller_batches_and_every_other_error_is_told(
    error: Exception, room: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flagembedding, "flag_embedding", lambda: SimpleNamespace(FlagReranker=Shrinking))
    monkeypatch.setattr(Logits, "error", error)
    monkeypatch.setattr(Logits, "room", room)
    monkeypatch.setattr(Logits, "sizes", [])
    flagembedding.load.cache_clear()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "xlm-roberta"}))
    scorer = FlagPairScorer(path=tmp_path, name="tiny", batch=8)
    pairs = np.array([(q, p) for q in range(2) for p in range(3)])
    scores = np.full(len(pairs), np.nan)
    if message:
        with pytest.raises(MemlabError, match=message):
            list(scorer.score(["a", "bb"], ["", "c", "dd"], pairs))
        assert len(Logits.sizes) == 1 or Logits.sizes[-1] == 1
    else:
        for at, block in scorer.score(["a", "bb"], ["", "c", "dd"], pairs):
            scores[at] = block
        assert scores.tolist() == [1, 0, -1, 2, 1, 0]
        assert Logits.sizes[-1] <= room
    flagembedding.load.cache_clear()


def test_any_error_of_flagembeddings_own_code_is_told() -> None:
    def call(batch: int) -> list[float]:
        raise RuntimeError("CUDA error: unspecified launch failure")

    with pytest.raises(MemlabError, match="FlagEmbedding failed: RuntimeError: CUDA error: unspecified launch failure"):
        flagembedding.run_smaller(call, 4)
