"""The command: what it prints, its hints, its server on loopback, and how it ends."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.commands import questions as command
from tests.chat_exports import json_lines, write
from tests.data.questions.test_propose import LINES


@pytest.mark.parametrize(("files", "path", "hints"), [
    ({"chats/sessions.jsonl": json_lines(*LINES)}, "chat", ("no such folder", "did you mean 'chats'?")),
    ({"export.zip": "x"}, "export.zip", ("it is a file", "memlab import export.zip")),
    ({"c/sessions.jsonl": json_lines(*LINES)}, "c/sessions.jsonl", ("memlab questions c",)),
    ({"l/sessions.jsonl": json_lines(*LINES).replace("rains", "r\u00e4t").encode("latin-1").replace(
        b"It", b"\xc4t")}, "l", ("not UTF-8: byte", "iconv -f cp1252 -t utf-8 l/sessions.jsonl"))])
def test_hints_say_what_to_type(tmp_path: Path, files: dict[str, object], path: str, hints: tuple[str, ...],
                                monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    assert command.main([path]) == 1
    errors = capsys.readouterr().err
    assert [hint for hint in (*hints, ".py") if hint not in errors] == [".py"]


def test_faults_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"sessions.jsonl": json_lines(*LINES)})
    for wrong, told in ((["--depth", "0"], "--depth"), (["--chat", "qwen"], "did you mean"),
                        (["chat.urll=http://127.0.0.1:1/v1"], "did you mean")):
        assert command.main([str(tmp_path), *wrong]) == 1
        assert told in capsys.readouterr().err


@pytest.mark.slow
def test_the_server_answers_its_page_alone_and_ends_in_one_sentence(tmp_path: Path) -> None:
    write(tmp_path, {"sessions.jsonl": json_lines(*LINES)})
    with subprocess.Popen([sys.executable, "-m", "memlab", "questions", str(tmp_path), "--no-browser"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env={**os.environ, "MEMLAB_HOME": str(tmp_path / "home")}) as process:
        assert process.stdout is not None
        assert process.stdout.readline().endswith("5 turns in 2 sessions; 2 questions proposed, 0 in questions.jsonl\n")
        assert "in English" in process.stdout.readline()
        host, token = process.stdout.readline().removeprefix("open http://").strip().rstrip("/").split("/")
        for method, path, headers, status in (
                ("GET", f"/{token}/", {}, 200), ("GET", "/", {}, 404), ("DELETE", f"/{token}/", {}, 501),
                ("POST", f"/{token}/add", {"Content-Length": "2000000"}, 413),
                ("POST", f"/{token}/add", {"Content-Length": "-1"}, 411)):
            connection = http.client.HTTPConnection(host, timeout=30)
            connection.request(method, path, headers=headers)
            assert connection.getresponse().status == status
            connection.close()
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
        assert rest == f"\n0 questions with evidence in {tmp_path / 'questions.jsonl'}\n"
        assert (process.returncode, "Traceback" in errors) == (0, False)
