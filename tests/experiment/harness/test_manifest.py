"""The record of a run: versions, hardware, commit."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from memlab.experiment.harness import manifest
from memlab.support.files import write_json
from memlab.support.foreign import read_json


def test_the_commit_is_that_of_memlabs_own_checkout_or_null(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A virtualenv inside a user's own repository holds memlab; that repository's commit says nothing of memlab."""
    monkeypatch.setattr(manifest, "PACKAGE", tmp_path / "memlab")
    assert manifest.commit.__wrapped__() == {"commit": None, "dirty": None}
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "-C", tmp_path, *identity, "commit", "-q", "--allow-empty", "-m", "mine"], check=True)
    assert manifest.commit.__wrapped__()["commit"]
    monkeypatch.setattr(manifest, "PACKAGE", tmp_path / ".venv/lib/site-packages/memlab")
    (tmp_path / ".venv/lib/site-packages/memlab").mkdir(parents=True)
    assert manifest.commit.__wrapped__() == {"commit": None, "dirty": None}


def test_a_number_that_json_lacks_is_not_written(tmp_path: Path) -> None:
    write_json(tmp_path / "x.json", {"a": [1, 2.5, None], "p": Path("y")})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "x.json", {"a": float("nan")})
    assert read_json(tmp_path / "x.json") == {"a": [1, 2.5, None], "p": "y"}
