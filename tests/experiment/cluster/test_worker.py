"""The traceback of an arm that fails."""

from __future__ import annotations

from pathlib import Path

from memlab.experiment.cluster.worker import keep_traceback
from memlab.support.errors import MemlabError


def test_a_traceback_that_cannot_be_written_is_shown_unless_the_message_says_all(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "one.failed.txt"
    assert keep_traceback(nowhere, MemlabError("the disk is full")) == ""
    assert keep_traceback(nowhere, ValueError("a fault of memlab")).endswith("ValueError: a fault of memlab\n")
    path = tmp_path / "one.failed.txt"
    assert keep_traceback(path, MemlabError("the disk is full")) == f"details: {path}"
    assert "the disk is full" in path.read_text()
