from __future__ import annotations

from pathlib import Path

from memlab.track.record import LINES, MARKER_CHARACTERS, failure_tail


def test_the_last_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "a-1.failed.txt").write_text("\n".join(f"line {i}" for i in range(100)))
    lines = failure_tail(tmp_path / "a-1", {}).splitlines()
    assert lines[-1] == "line 99"
    assert len(lines) == LINES
    (tmp_path / "a-1.failed.txt").write_text("x" * 10_000)
    assert len(failure_tail(tmp_path / "a-1", {})) == MARKER_CHARACTERS
