"""Escape sequences and rare letters in names and data on their way to the terminal, through whole commands."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.commands.report import main as report
from memlab.commands.status import main as status
from memlab.run import main as run
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


def own_data(tmp_path: Path) -> list[str]:
    """Words for a data set with letters that few encodings have."""
    (tmp_path / "sessions.jsonl").write_text(json.dumps(
        {"corpus": "c–東", "session": "s", "said_on": "2023-05-20",
         "turns": [{"role": "user", "text": "Zoë – 東京 ate soup"}]}) + "\n")
    (tmp_path / "questions.jsonl").write_text(json.dumps(
        {"corpus": "c–東", "question": "q", "text": "Where is Zoë – 東京?", "asked_on": "2023-05-21",
         "category": "a", "evidence": [{"session": "s", "turn": 0}]}) + "\n")
    return ["data=custom", f"data.path={tmp_path}", "search/dense=none"]


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_a_terminal_without_the_letters_of_a_text_ends_no_command(
        tmp_path: Path, encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_data(tmp_path)
    for line, expected in (
            (["run", *own, "track=none", f"out={tmp_path}/runs"], 0), (["run", *own, "rank.select.k='東'"], 2),
            (["report", f"{tmp_path}/runs"], 0), (["ask", "Zoë – 東京?", *own], 0),
            (["data", "show", *own[:2], "q"], 0), (["東"], 2), (["run", "--help"], 0), (["status", "東"], 1)):
        shown = io.BytesIO()
        for stream in ("stdout", "stderr"):
            monkeypatch.setattr(sys, stream, io.TextIOWrapper(shown, encoding, write_through=True))
        assert main(line) == expected, shown.getvalue()
        assert b"Traceback" not in shown.getvalue()
