"""Paths that the operating system refuses end in a message, in commands and in settings."""

from __future__ import annotations

import argparse
import errno
from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.data.benchmarks import data_folder
from memlab.experiment.harness.sweep import read
from memlab.support.errors import Faults, MemlabError
from memlab.support.paths import expand, home, no_runs, path_argument, path_refusal, refusal_message

LONG = "a" * 300


def test_a_path_where_nothing_is_is_no_fault(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    assert [path_refusal(path) for path in (file, tmp_path / "none", file / "below", "")] == ["", "", "", ""]
    assert path_argument(str(tmp_path / "none")) == tmp_path / "none"


def test_the_reason_comes_with_a_path_of_80_characters(tmp_path: Path) -> None:
    assert path_refusal(LONG) == f"File name too long: {'a' * 80}..."
    assert refusal_message(OSError(errno.EACCES, "Permission denied", "/x")) == "Permission denied: /x"
    assert path_refusal("a\0b") == "embedded null byte"
    assert path_refusal("~nobody-of-this-name/x") == "there is no such user: ~nobody-of-this-name/x"
    (tmp_path / "one").symlink_to(tmp_path / "one")
    assert "symbolic links" in path_refusal(tmp_path / "one")
    with pytest.raises(argparse.ArgumentTypeError, match="File name too long"):
        path_argument(LONG)


@pytest.mark.parametrize(("word", "problem"), [
    (f"data.path={LONG}", "too long"), (f"conf_dir={LONG}", "too long"), (f"out={LONG}", "too long"),
    (f"store={LONG}", "too long"), (f"embedder.path=/{LONG}", "too long"),
    ("chat.tokenizer='~nobody-of-this-name/x'", "no such user")])
def test_a_setting_is_a_fault_beside_the_others(word: str, problem: str, tmp_path: Path) -> None:
    words = ["data=custom", "data.path=x.jsonl", f"out={tmp_path}", "rank.select.kk=1", "embedder=bge_small",
             "search/dense=flat", "read/answer=reader", "chat.model=m"]
    with pytest.raises(Faults) as caught:
        read([*(one for one in words if one.partition("=")[0] != word.partition("=")[0]), word])
    assert any(problem in fault for fault in caught.value.faults), caught.value.faults
    assert any("kk" in fault for fault in caught.value.faults)


@pytest.mark.parametrize("command", [
    ["report"], ["track"], ["status", "--out"], ["import"], ["data", "check", "custom", "--path"],
    ["store", "info", "--store"], ["judge"], ["questions"], ["serve", "--env"]])
def test_an_argument_of_a_command_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command, LONG])
    assert ended.value.code == 2
    assert "File name too long" in capsys.readouterr().err


def test_an_unknown_user_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MemlabError, match="no such user: ~nobody-of-this-name"):
        expand("~nobody-of-this-name/x")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand("~/x") == tmp_path / "x"
    monkeypatch.setenv("MEMLAB_HOME", "~/kept")
    assert (home(), data_folder()) == (tmp_path / "kept", tmp_path / "kept" / "data")


def test_a_folder_that_may_not_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("memlab.support.paths.os.access", lambda path, mode: path != tmp_path)  # root reads all
    assert path_refusal(tmp_path) == f"Permission denied: {tmp_path}"
    for words in (["data", "check"], ["questions"], ["status", "--out"], ["store", "info", "--store"], ["report"]):
        with pytest.raises(SystemExit):
            main([*words, str(tmp_path)])
        assert f"Permission denied: {tmp_path}" in capsys.readouterr().err
    with pytest.raises(Faults, match="Permission denied"):
        read(["data=custom", f"data.path={tmp_path}"])


@pytest.mark.parametrize("words", [["report"], ["track"], ["track", "sync"]])
def test_a_missing_folder_of_runs_is_answered_with_those_that_are_there(
        words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs" / "adaptive_k" / "synthetic" / "a").mkdir(parents=True)
    (tmp_path / "runs" / "adaptive_k" / "synthetic" / "a" / "manifest.json").write_text("{}")
    here = tmp_path / "runs" / "adaptive_k" / "synthetic"
    assert main([*words, str(tmp_path / "runs" / "nope")]) == 1
    told = capsys.readouterr().err
    assert f"there is no folder {tmp_path}/runs/nope. Fix: " in told
    assert f"known: {here}" in told
    assert f"did you mean '{here}'?" in str(no_runs(tmp_path / "runs" / "adaptiv_k" / "synthetic"))
    assert "is a file, no folder of runs" in str(no_runs(here / "a" / "manifest.json"))
    (tmp_path / "empty").mkdir()
    assert f"no finished run under {tmp_path}/empty" in str(no_runs(tmp_path / "empty"))
