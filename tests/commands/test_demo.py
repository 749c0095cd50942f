"""The demonstration: it runs the experiment, asks the question, and names the report."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlab.commands import demo
from memlab.experiment.harness.sweep import read

pytestmark = pytest.mark.slow


def words(root: Path, *more: str) -> list[str]:
    return ["--no-open", "system=plain", "contrasts=[]", "search/dense=none", "track=none", f"out={root}/runs",
            f"store={root}/store", *more]


def test_the_question_is_asked_of_each_system(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(words(tmp_path, "data.lives=2", "rank.select.tokens=500,1000")) == 0
    out = capsys.readouterr().out
    report = tmp_path / "runs" / "demo" / "synthetic" / "report.html"
    assert f"report: {report}" in out
    assert report.is_file()
    question = out[out.index('"Who is my manager now?", asked of life-0'):]
    assert question.count("Ximena.") == 2
    assert "current fact" in question
    assert "ahead by lexical:turn" in " ".join(question.split())
    assert 'memlab ask corpus=life-0 "Who is my manager now?"' in question


def test_faults_come_before_the_work(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["--no-open", "rank.select.tokns=5"]) == 2
    assert "did you mean" in capsys.readouterr().out


def test_the_experiment_compares_best_with_the_five_systems() -> None:
    assert [arm.name for arm in read(["+exp=demo"]).arms] == [
        "best", "rag_v1_local", "elizaos", "memorystack_fast", "gimli", "oltramem"]


@pytest.mark.parametrize(("terminal", "environment", "shown"), [
    (True, {"DISPLAY": ":0"}, True), (True, {"WAYLAND_DISPLAY": "w"}, True), (True, {}, False),
    (False, {"DISPLAY": ":0"}, False), (True, {"DISPLAY": ":0", "SSH_CONNECTION": "a"}, False)])
def test_a_browser_is_opened_where_somebody_sits(monkeypatch: pytest.MonkeyPatch, terminal: bool,
                                                 environment: dict[str, str], shown: bool) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    assert demo.has_display() is shown
