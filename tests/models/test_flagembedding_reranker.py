"""Number formats of FlagEmbedding's rerankers, with stand-ins for its classes and for a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
import torch

from memlab.models import flagembedding  # noqa: E402
from memlab.models.flagembedding import FlagPairScorer
from tests.models.local.conftest import gpus

__all__ = ["gpus"]


@pytest.mark.parametrize(("kind", "model_type", "made", "dtype"), [
    ("llm", "gemma", {"use_fp16": False, "use_bf16": True}, "bf16"),
    ("llm", "llama", {"use_fp16": True}, "fp16"),
    ("encoder", "xlm-roberta", {"use_fp16": True}, "fp16"),
    ("encoder", "modernbert", {"use_fp16": False}, "fp32"),  # its class for encoders knows no bf16
])
def test_a_model_that_overflows_fp16_is_not_loaded_in_it(
    kind: Literal["encoder", "llm"], model_type: str, made: dict[str, bool], dtype: str, tmp_path: Path,
    gpus: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []
    gpus["count"] = 1
    def make(folder: str, **options: Any) -> Any:
        calls.append(options)
        return SimpleNamespace(model=torch.nn.Identity())

    monkeypatch.setattr(flagembedding, "flag_embedding",
                        lambda: SimpleNamespace(FlagReranker=make, FlagLLMReranker=make))
    flagembedding.load.cache_clear()
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    scorer = FlagPairScorer(path=tmp_path, name="tiny", kind=kind)
    scorer._model()
    assert calls == [{**made, "devices": ["cuda:0"]}]
    assert scorer.identity()["dtype"] == dtype
    flagembedding.load.cache_clear()
