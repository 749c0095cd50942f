"""Failing models behind FlagEmbedding's classes, which take any RuntimeError for a lack of memory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("FlagEmbedding", reason="FlagEmbedding is not installed (pip install 'memlab[flag]')")

import torch  # noqa: E402  (only where FlagEmbedding is)

from memlab.errors import MemlabError  # noqa: E402
from memlab.models import flagembedding  # noqa: E402
from memlab.models.flagembedding import (  # noqa: E402
    FlagPairScorer,  # noqa: E402
    M3Embedder,
    M3Scorer,
)
from tests.models.flag_models import save_classifier, save_language_model, save_m3  # noqa: E402

TEXTS = ["anna moved to lisbon last spring", "bob stayed in oslo because work was good there", "his old dog"]
PAIRS = np.array([(q, p) for p in range(3) for q in range(3)])
Run = Callable[[], np.ndarray]


def scores(scorer: Any) -> np.ndarray:
    found = np.full(len(PAIRS), np.nan, np.float32)
    for at, block in scorer.score(TEXTS, TEXTS, PAIRS):
        found[at] = block
    return found


def vectors(embedder: M3Embedder) -> np.ndarray:
    found = np.full((len(TEXTS), embedder.dim()), np.nan, np.float32)
    for at, block in embedder.encode(TEXTS, "document"):
        found[at] = block
    return found


@pytest.fixture(params=["encoder", "llm", "dense", "sparse"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    """Scores or vectors of a tiny model; FlagEmbedding's classes are loaded anew for each test."""
    kind = request.param
    flagembedding.load.cache_clear()
    {"encoder": save_classifier, "llm": save_language_model}.get(kind, save_m3)(tmp_path)
    if kind in ("encoder", "llm"):
        return lambda: scores(FlagPairScorer(path=tmp_path, name="tiny", kind=kind, max_length=64, batch=4))
    if kind == "dense":
        return lambda: vectors(M3Embedder(path=tmp_path, max_length=64, batch=2))
    return lambda: scores(M3Scorer(path=tmp_path, max_length=64, batch=2))


def fail(monkeypatch: pytest.MonkeyPatch, error: Exception, room: int = 0) -> list[int]:
    """Make every model raise for batches of more than ``room`` texts; return the sizes of the batches it was given."""
    sizes: list[int] = []
    real = torch.nn.Embedding.forward

    def forward(self: Any, ids: Any) -> Any:
        if self.num_embeddings not in (1, 140):  # neither types nor positions
            sizes.append(len(ids))
            if len(ids) > room:
                assert len(sizes) < 50, "an endless loop"
                raise error
        return real(self, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", forward)
    return sizes


def test_an_error_of_the_model_is_told_and_not_tried_again(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = fail(monkeypatch, RuntimeError("CUDA error: device-side assert triggered"))
    with pytest.raises(MemlabError, match=r"device-side assert triggered.*Fix: .*device=cpu"):
        run()
    assert len(sizes) == 1


@pytest.mark.parametrize("error", [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("[enforce fail at alloc_cpu.cpp:128] . DefaultCPUAllocator: can't allocate memory: you tried to "
                 "allocate 4000000000 bytes. Error code 12 (Cannot allocate memory)"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")])
def test_a_lack_of_memory_for_one_text_is_told(run: Run, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = fail(monkeypatch, error)
    with pytest.raises(MemlabError, match=r"one text .*does not fit into .*memory.*Fix: a smaller max_length"):
        run()
    assert sizes[-1] == 1


def test_a_lack_of_memory_for_several_texts_makes_smaller_batches(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run()
    sizes = fail(monkeypatch, torch.OutOfMemoryError("CUDA out of memory."), room=1)
    np.testing.assert_allclose(run(), whole, atol=1e-5)
    assert max(sizes) > 1


def test_memory_that_another_process_takes_later_makes_smaller_batches(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FlagEmbedding tries its first batch; a lack of memory in a later one ended the run."""
    whole = run()
    real, sizes = torch.nn.Embedding.forward, list[int]()

    def forward(self: Any, ids: Any) -> Any:
        if self.num_embeddings not in (1, 140):
            sizes.append(len(ids))
            if len(sizes) >= 2 and len(ids) > 1:
                raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(self, ids)

    monkeypatch.setattr(torch.nn.Embedding, "forward", forward)
    np.testing.assert_allclose(run(), whole, atol=1e-5)
    assert sizes[0] > 1
    assert sizes[-1] == 1


def test_an_error_of_the_device_outside_the_model_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import transformers

    def move(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError("CUDA error: unspecified launch failure")

    run()
    monkeypatch.setattr(transformers.BatchEncoding, "to", move)
    monkeypatch.setattr(torch.nn.Module, "to", move)
    with pytest.raises(MemlabError, match="FlagEmbedding failed: .*device=cpu"):
        run()
