"""Completion scripts, run in the shells that are here (apt-get install zsh)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from memlab.__main__ import COMMANDS, main
from memlab.commands.completion import script
from memlab.experiment.config.instantiate import options

FUNCTION = 'source "$1"; COMP_LINE=$2 COMP_POINT=${#2} COMP_CWORD=$3; _memlab; printf "%s\\n" "${COMPREPLY[@]}"'


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("scripts") / "bash"
    file.write_text(script("bash"), encoding="utf-8")
    return file


@pytest.mark.parametrize(("line", "expected"), [
    ("ru", ["run"]), ("run rank/sel", ["rank/select="]), ("run +e", ["+exp="]),
    ("run rank/select=ga", ["gap"]), ("run -m rank.select.buf", ["rank.select.buffer="]),
    ("run system=gimli_c", ["gimli_corrected"]), ("run pla", ["plan="]), ("run rank/select=", options("rank/select")),
    ("", list(COMMANDS)), ("run data.path=cha", []),
    ("import a.zip --format goo", ["google_chat"]), ("import --format mess", [
        "messages", "messenger", "messenger_encrypted"])])
def test_bash_completes(line: str, expected: list[str], bash: Path) -> None:
    words = ["bash", "-c", FUNCTION, "bash", str(bash), f"memlab {line}", str(max(1, len(line.split())))]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.split() == expected


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh (apt-get install zsh)")
def test_zsh_reads_the_script_for_bash(tmp_path: Path) -> None:
    (tmp_path / "zsh").write_text(script("zsh"), encoding="utf-8")
    code = f"source {tmp_path / 'zsh'}; print -r -- $_comps[memlab]"
    done = subprocess.run(["zsh", "-fc", code], capture_output=True, text=True, check=True)
    assert "_memlab" in done.stdout


def test_the_command_prints_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "zsh"]) == 0
    assert "complete -o default -F _memlab memlab" in capsys.readouterr().out
