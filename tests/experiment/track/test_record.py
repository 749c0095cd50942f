from __future__ import annotations

from pathlib import Path

from memlab.experiment.harness.results import ArmRun
from memlab.experiment.track.record import LINES, MARKER_CHARACTERS, failure_tail, figures


def test_the_last_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "a-1.failed.txt").write_text("\n".join(f"line {i}" for i in range(100)))
    lines = failure_tail(tmp_path / "a-1", {}).splitlines()
    assert lines[-1] == "line 99"
    assert len(lines) == LINES
    (tmp_path / "a-1.failed.txt").write_text("x" * 10_000)
    assert len(failure_tail(tmp_path / "a-1", {})) == MARKER_CHARACTERS


def test_dollars_and_milliseconds_are_figures() -> None:
    arm = ArmRun("a", "0", Path(), {"questions": 2, "costs": {"dense": .5}, "replies": {}}, {"session/mrr": .25})
    assert figures(arm) == {"session/mrr": .25, "manifest/questions": 2, "cost/question": 0.0, "cost/writing": 0.0,
                            "latency_ms/search": 250.0, "latency_ms/total": 250.0}
