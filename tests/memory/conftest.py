"""An open database, for tests of what is kept in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from memlab.memory.database import Database


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path)
    database.open()
    yield database
    database.close()
