"""memlab fuse: ranking files fused by hand-computed rules, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.evaluate.score.runs import read_run

RUNS = {"a.trec": "q%201 Q0 s1 1 9 a\nq%201 Q0 s2 2 5 a\nq%201 Q0 s3 3 1 a\n",
        "b.trec": "q%201 Q0 s2 1 .4 b\nq%201 Q0 s4 2 .2 b\nq2 Q0 s1 1 1 b\n"}


@pytest.mark.parametrize(("method", "expected"), [
    ("rrf", [("s2", 1 / 62 + 1 / 61), ("s1", 1 / 61), ("s4", 1 / 62), ("s3", 1 / 63)]),
    ("weighted", [("s2", 1.5), ("s1", 1.0), ("s3", 0.0), ("s4", 0.0)]),
    ("combmnz", [("s2", 3.0), ("s1", 1.0), ("s3", 0.0), ("s4", 0.0)])])
def test_runs_are_fused_as_searches_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str,
                                        expected: list[tuple[str, float]]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in RUNS.items():
        Path(name).write_text(text)
    assert main(["fuse", *RUNS, f"method={method}", "out=c.trec"]) == 0
    rows = [row for row in read_run(Path("c.trec")).rows.iter_rows() if row[0] == "q 1"]
    assert [(document, score) for _, document, score, _ in rows] == [(d, pytest.approx(s)) for d, s in expected]


def test_a_file_that_is_no_run_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fuse", str(tmp_path / "none"), f"out={tmp_path}/c.trec"]) == 1
    assert "the run cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "c.trec").exists()
