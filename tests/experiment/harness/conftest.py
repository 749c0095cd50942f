"""Run folders of the report's tests, for the tests that read them, and a store."""

from pathlib import Path

import pytest

from memlab.store import Store
from tests.report.conftest import made, runs

__all__ = ["made", "runs"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")
