"""Small models with random weights, made once for the session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.learn.small_models import tiny, tiny_encoder


@pytest.fixture(scope="session")
def tiny_reranker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of two layers."""
    return tiny(tmp_path_factory.mktemp("reranker"))


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sentence encoder of two layers."""
    return tiny_encoder(tmp_path_factory.mktemp("base"))
