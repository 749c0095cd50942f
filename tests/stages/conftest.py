"""A store for tests of stages."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)
