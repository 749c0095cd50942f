"""Escape sequences in names and data on their way to the terminal, through whole commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.report.__main__ import main as report
from memlab.run import main as run
from memlab.status import main as status
from tests.small import words

TITLE = "\x1b]0;pwned\x07"


def printed(capfd: pytest.CaptureFixture[str]) -> str:
    shown = capfd.readouterr()
    return shown.out + shown.err


def steers(text: str) -> list[str]:
    """Characters of a text that steer a terminal; styles of the console itself are off where nothing is a terminal."""
    return [c for c in text if not c.isprintable() and c != "\n"]


@pytest.mark.slow
def test_a_name_steers_no_terminal_in_any_command(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(words(tmp_path, f"name='a{TITLE}b'", "plan=true")) == 0
    assert run(words(tmp_path, f"name='a{TITLE}b'")) == 0
    assert run(words(tmp_path, f"name='a{TITLE}b'", f"rank.select.k={TITLE}")) == 2
    commands: list[Callable[[list[str]], object]] = [report, status]
    for command in commands:
        command([str(tmp_path / "runs")])
    assert steers(printed(capfd)) == []


@pytest.mark.slow
def test_a_corpus_in_a_message_steers_no_terminal(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sessions.jsonl").write_text(json.dumps(
        {"corpus": f"c{TITLE}", "session": f"s{TITLE}", "date": f"never{TITLE}", "turns": [{"text": "a"}]}) + "\n")
    (tmp_path / "questions.jsonl").write_text(json.dumps(
        {"corpus": f"other{TITLE}", "id": f"q{TITLE}", "question": "a", "evidence": [f"x{TITLE}"]}) + "\n")
    assert run(["data=custom", f"data.path={tmp_path}", "search/dense=none", "track=none", f"out={tmp_path}/runs"]) != 0
    text = printed(capfd)
    assert "pwned" in text
    assert steers(text) == []
