"""One small model for all tests of local models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memlab.models.local.backend import resolve
from memlab.models.local.embedder import SentenceEmbedder
from tests.learn.small_models import tiny_encoder


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a small encoder with random weights."""
    return tiny_encoder(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="session")
def tiny(base: Path) -> SentenceEmbedder:
    return SentenceEmbedder(path=base, name="tiny")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Two GPUs of compute capability 9.0 (H100, H200); a test may change both."""
    import torch

    machine = {"count": 2, "capability": (9, 0)}
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: machine["count"])
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: machine["capability"])
    resolve.cache_clear()
    yield machine
    resolve.cache_clear()
