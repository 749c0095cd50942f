"""Made-up run folders and a W&B server on the loopback device for the tests of this room."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiment.track.loopback import KEY, loopback
from tests.report.samples import make_runs
from tests.sealing import seal


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three finished arms; nobody changes these."""
    folder = make_runs(tmp_path_factory.mktemp("made") / "adaptive_k" / "synthetic", questions=12,
                               arms=("gap", "fixed_10", "oracle"))
    for path in folder.glob("*/metrics.json"):  # a metric whose name a table once took in the summary
        path.write_text(json.dumps({"questions": 12, **json.loads(path.read_text())}))
        seal(path.parent)
    return folder


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of them that a test may change."""
    return shutil.copytree(made, tmp_path / "runs" / "adaptive_k" / "synthetic")


@pytest.fixture
def gap(runs: Path) -> Path:
    """The folder of one of those arms."""
    return next(runs.glob("gap-*"))


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A W&B server on the loopback device, and an account on it that this test alone has."""
    wandb = pytest.importorskip("wandb", reason="wandb is not installed: pip install -e .")
    wandb.teardown()  # the client remembers the server of the test before
    with loopback() as state:
        for name, value in {"WANDB_BASE_URL": state.url, "WANDB_API_KEY": KEY, "HOME": tmp_path / "home",
                            "WANDB_CONFIG_DIR": tmp_path / "config", "WANDB_CACHE_DIR": tmp_path / "cache",
                            "WANDB_DATA_DIR": tmp_path / "data", "WANDB_SILENT": "true"}.items():
            monkeypatch.setenv(name, str(value))
        yield state
        wandb.teardown()
