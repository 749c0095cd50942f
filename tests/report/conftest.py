"""Made-up run folders for the tests of this room."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from memlab.harness.results import ArmRun, finished_arms
from memlab.report.build import ReportFiles, build
from tests.track.conftest import server

__all__ = ["server"]

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def samples() -> ModuleType:
    """The module that makes run folders, loaded by its path under any import mode."""
    spec = importlib.util.spec_from_file_location("report_samples", HERE / "samples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["report_samples"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def made(samples: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six finished arms on sixty questions, one of them hostile; nobody changes these."""
    return samples.make_runs(tmp_path_factory.mktemp("made") / "adaptive_k" / "synthetic")


@pytest.fixture
def runs(made: Path, tmp_path: Path) -> Path:
    """A copy of them that a test may change."""
    return shutil.copytree(made, tmp_path / "runs" / "adaptive_k" / "synthetic")


@pytest.fixture(scope="session")
def report(made: Path, tmp_path_factory: pytest.TempPathFactory) -> ReportFiles:
    """Their report, built once; tests only read it."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("report") / "adaptive_k" / "synthetic")
    return build(folder, expected=["fixed_10", "fixed_5", "budget"])


@pytest.fixture(scope="session")
def arms(report: ReportFiles) -> tuple[ArmRun, ...]:
    """The arms of that report."""
    return finished_arms(report.html.parent, ["fixed_10", "fixed_5"]).arms
