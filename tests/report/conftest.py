"""Made-up run folders for the tests of this room."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memlab.experiment.harness.results import ArmRun, finished_arms
from memlab.report.build import ReportFiles, build
from memlab.report.view_model import ReportView
from tests.experiment.track.conftest import server
from tests.report.samples import make_runs

__all__ = ["server"]


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six finished arms on sixty questions, one of them hostile; nobody changes these."""
    return make_runs(tmp_path_factory.mktemp("made") / "adaptive_k" / "synthetic")


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
def view(report: ReportFiles) -> ReportView:
    """What that report shows."""
    return report.view


@pytest.fixture(scope="session")
def arms(report: ReportFiles) -> tuple[ArmRun, ...]:
    """The arms of that report."""
    return finished_arms(report.html.parent, ["fixed_10", "fixed_5"]).arms
