"""Configuration files of a user, and what is said of a command line, for tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.experiment.harness.sweep import read
from memlab.support.errors import Faults


def put(folder: Path, **files: str) -> Path:
    """Write files, ``__`` in a name stands for a slash; return the folder."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder


def faults_of(*words: str) -> list[str]:
    """Return the faults of a command line, each in one line."""
    with pytest.raises(Faults) as raised:
        read([*words])
    assert "Traceback" not in str(raised.value)
    assert all("\n" not in fault for fault in raised.value.faults)
    return raised.value.faults
