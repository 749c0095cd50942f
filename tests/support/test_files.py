"""Atomic files and folders: whole or absent, for several writers, and nothing left behind but by kill -9."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memlab.support.errors import DiskFault
from memlab.support.files import STALE, atomic_dir, atomic_path, atomic_write, is_stale, sweep_leftovers


@pytest.mark.parametrize("content", [b"caf\xc3\xa9", memoryview(b"caf\xc3\xa9"), "café"])
def test_a_file_is_replaced_whole(tmp_path: Path, content: bytes | memoryview | str) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")
    atomic_write(path, content)
    assert path.read_text("utf-8") == "café"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("old")

    def fail(error: type[BaseException]) -> None:
        with atomic_path(path) as temporary:
            temporary.write_text("half")
            raise error

    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            fail(error)
    with pytest.raises(DiskFault, match="its folder is not there"), atomic_path(path):  # nothing was written
        pass
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_whole_open_to_others_and_never_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "arm"
    with atomic_dir(folder) as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "a").write_text("first")
        assert not folder.exists()
    with atomic_dir(folder) as temporary:
        (temporary / "b").write_text("second")
    assert [path.relative_to(folder).as_posix() for path in folder.rglob("*")] == ["sub", "sub/a"]
    assert folder.stat().st_mode & 0o777 == 0o755
    with pytest.raises(ValueError, match="x"), atomic_dir(tmp_path / "other") as temporary:
        raise ValueError("x")
    assert [path.name for path in tmp_path.rglob("*") if path.is_dir()] == ["runs", "arm", "sub"]


def test_kill_9_leaves_the_old_file_and_a_temporary_one_that_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_text("old")
    code = ("import sys, time; from pathlib import Path; from memlab.support.files import atomic_path\n"
            "with atomic_path(Path(sys.argv[1])) as temporary:\n"
            "    temporary.write_text('half'); print('ready', flush=True); time.sleep(60)")
    worker = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    assert worker.stdout is not None
    assert worker.stdout.readline() == "ready\n"
    worker.send_signal(signal.SIGKILL)
    worker.communicate()
    assert path.read_text() == "old"
    (leftover,) = tmp_path.glob(".x.*.tmp")
    assert not is_stale(leftover)
    os.utime(leftover, (time.time() - STALE - 60,) * 2)
    assert is_stale(leftover)
    assert not is_stale(tmp_path / "gone")


def test_leftovers_of_a_name_are_removed_when_they_are_old(tmp_path: Path) -> None:
    old = time.time() - STALE - 60
    names = [".report.md.1.tmp", ".report.md.2.tmp", ".report.md.1.txt", ".report.html.1.tmp", "report.md"]
    for name in names:
        (tmp_path / name).write_text("x")
    folder = tmp_path / ".report.md.3.tmp"
    folder.mkdir()
    for name in (*names, folder.name):
        if name != ".report.md.2.tmp":  # somebody writes it now
            os.utime(tmp_path / name, (old, old))
    sweep_leftovers(tmp_path / "report.md")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(set(names) - {".report.md.1.tmp"})
