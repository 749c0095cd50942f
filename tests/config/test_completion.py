"""Completion scripts, run in the shells that are here (apt-get install zsh fish)."""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from memlab.__main__ import COMMANDS, main
from memlab.config.completion import SHELLS, WORDS, script
from memlab.config.instantiate import options


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scripts")
    for shell in SHELLS:
        (folder / shell).write_text(script(shell), encoding="utf-8")
    return {shell: folder / shell for shell in SHELLS}


def bash(source: Path, words: Sequence[str], cwd: Path) -> list[str]:
    """Complete the last word as bash calls the function."""
    code = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _memlab; printf "%s\\n" "${COMPREPLY[@]}"'
    done = subprocess.run(["bash", "-c", code, "bash", str(source), *words], capture_output=True, text=True, check=True,
                          cwd=cwd)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(("line", "expected"), [
    (["ru"], ["run"]), (["run", "rank/sel"], ["rank/select="]), (["run", "+e"], ["+exp="]),
    (["run", "rank/select=ga"], ["rank/select=gap"]), (["run", "rank/select", "=", "ga"], ["gap"]),
    (["run", "rank/select=gap,top_p_c"], ["rank/select=gap,top_p_calibrated"]),
    (["run", "rank/select", "=", "gap,top_p_c"], ["gap,top_p_calibrated"]),
    (["run", "-m", "rank.select.k_by_q"], []), (["ask", "rank.select.buf"], ["rank.select.buffer="]),
    (["run", "plan="], ["plan=true", "plan=false"]), (["run", "rank.score.method=we"], ["rank.score.method=weighted"]),
    (["run", "+exp", "=", "adaptive_k_an"], ["adaptive_k_answers"]), (["run", "data=loc"], ["data=locomo"]),
    (["run", "system", "=", "gimli_c"], ["gimli_corrected"]), (["report", "--se"], ["--seed"]),
    (["explain", "rank/select/top_p_c"], ["rank/select/top_p_calibrated"]), (["completion", "z"], ["zsh"]),
    (["run", "data.path=cha"], ["data.path=chats-mine"]), (["run", "data.path", "=", "cha"], ["chats-mine"]),
    (["questions", "cha"], ["chats-mine"])])
def test_bash_completes(line: list[str], expected: list[str], scripts: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "chats-mine").mkdir()
    assert bash(scripts["bash"], ["memlab", *line], tmp_path) == expected


def test_bash_lists_all_choices_and_is_fast(scripts: dict[str, Path], tmp_path: Path) -> None:
    start = time.perf_counter()
    assert bash(scripts["bash"], ["memlab", "run", "rank/select", "=", ""], tmp_path) == options("rank/select")
    assert time.perf_counter() - start < 0.5
    assert bash(scripts["bash"], ["memlab", ""], tmp_path) == list(COMMANDS)


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("zsh"), reason="needs zsh (apt-get install zsh)")
def test_zsh_offers_the_same_words(scripts: dict[str, Path]) -> None:
    code = """compadd() { shift; print -rl -- ${@:#--} }; compset() { : }; _files() { print FILES }; compdef() { : }
    source $1; words=(memlab run rank/select=ga) CURRENT=3; _memlab; words=(memlab run rank.select.) CURRENT=3; _memlab
    words=(memlab run data.path=) CURRENT=3; _memlab; words=(memlab "") CURRENT=2; _memlab"""
    done = subprocess.run(["zsh", "-fc", code, "zsh", str(scripts["zsh"])], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert {*options("rank/select"), "rank.select.buffer=", "FILES", *COMMANDS} <= {*done.stdout.split()}


@pytest.mark.nightly
@pytest.mark.skipif(not shutil.which("fish"), reason="needs fish (apt-get install fish)")
@pytest.mark.parametrize(("line", "expected"), [
    ("ru", ["run"]), ("run rank/select=gap,top_p_c", ["rank/select=gap,top_p_calibrated"]),
    ("run rank/select=ga", ["rank/select=gap"]), ("run rank.select.buf", ["rank.select.buffer="]),
    ("report --se", ["--seed"]), ("run data.path=cha", ["data.path=chats-mine/"])])
def test_fish_completes(line: str, expected: list[str], scripts: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "chats-mine").mkdir()
    done = subprocess.run(["fish", "--no-config", "-c", f"source {scripts['fish']}; complete -C'memlab {line}'"],
                          capture_output=True, text=True, check=True, cwd=tmp_path)
    assert [found.split("\t")[0] for found in done.stdout.splitlines()] == expected


SECOND = {"train": (), "serve": ("list", "stop", "key"), "track": ("sync",),
          "data": ("list", "fetch", "check", "show")}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_flags_are_those_of_the_help(name: str) -> None:
    said: set[str] = set()
    for second in ("", *SECOND.get(name, ())):
        page = io.StringIO()
        with contextlib.redirect_stdout(page), contextlib.suppress(SystemExit):
            main([name, *filter(None, [second]), "--help"])
        said |= {*re.findall(r"^  (?:-\w, )?(--[\w-]+)", page.getvalue(), re.MULTILINE)} - {"--help"}
    flags = {word for word in WORDS[name].split() if word.startswith("--")}
    if said:
        assert flags == said


def test_the_command_prints_a_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "fish"]) == 0
    assert "complete -c memlab" in capsys.readouterr().out
