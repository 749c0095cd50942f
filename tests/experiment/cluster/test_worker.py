"""Finished arms are published and shown, whoever built their comparison, and wherever it is named from."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from memlab.experiment.cluster.worker import keep_traceback
from memlab.experiment.track.record import NoTracking
from memlab.report.build import publish, show
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.small import arm


@pytest.fixture
def relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The root of runs, as it is unless told otherwise: seen from where the command was given."""
    monkeypatch.chdir(tmp_path)
    return Path()


def test_one_arm_is_shown_as_one_by_whatever_path_its_comparison_is_named(relative: Path, tmp_path: Path) -> None:
    one = arm(relative)
    one.run(Store(tmp_path / "store"))
    (built,) = publish([one], NoTracking(), [])
    told = []
    for path in (built, built.resolve()):
        out = Console(file=io.StringIO(), width=200)
        show(path, [one], out)
        told.append(out.file.getvalue().rpartition("report:")[0])  # type: ignore[attr-defined]
    assert told[0] == told[1]
    assert "95 % interval" in told[0]


def test_a_traceback_that_cannot_be_written_is_shown_unless_the_message_says_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "one.failed.txt"
    assert keep_traceback(nowhere, MemlabError("the disk is full")) == ""
    assert keep_traceback(nowhere, ValueError("a fault of memlab")).endswith("ValueError: a fault of memlab\n")
    path = tmp_path / "one.failed.txt"
    assert keep_traceback(path, MemlabError("the disk is full")) == f"details: {path}"
    assert "the disk is full" in path.read_text()
