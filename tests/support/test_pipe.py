"""Commands whose output nobody reads any more: no traceback, whether the output is buffered or not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memlab.support.pipe import CLOSED


def run_unread(command: list[str], folder: Path, unbuffered: str) -> tuple[int, str]:
    """Return the status and the errors of a command whose output has no reader from the beginning."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        ended = subprocess.run([sys.executable, "-m", *command], stdout=writer, stderr=subprocess.PIPE, text=True,
                               cwd=folder, env={**os.environ, "PYTHONUNBUFFERED": unbuffered}, check=False)
    finally:
        os.close(writer)
    return ended.returncode, ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize(("words", "unbuffered"), [("import a.json --out x", ""), ("--help", "1"), ("data list", "1")])
def test_a_command_without_a_reader_ends_quietly(tmp_path: Path, words: str, unbuffered: str) -> None:
    (tmp_path / "a.json").write_text('[{"role": "user", "content": "Hi"}]')
    status, errors = run_unread(["memlab", *words.split()], tmp_path, unbuffered)
    assert not errors
    assert status in (CLOSED, 0)  # argparse ignores that its help is not read
    assert (tmp_path / "x/sessions.jsonl").exists() == words.startswith("import")


def test_messages_without_a_reader_do_not_end_the_work() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    program = ("import sys; from memlab.support.terminal import print; print('lost', file=sys.stderr); "
               "print('more', file=sys.stderr); print('done')")
    ended = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=writer, check=False)
    os.close(writer)
    assert (ended.returncode, ended.stdout) == (0, b"done\n")
