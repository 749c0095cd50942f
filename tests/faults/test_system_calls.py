"""A fault at each system call that writes: it fails for want of space, or the process is killed there.

strace injects the faults into the main thread, so that the writes of SQLite and of Python are among them, and what
follows the writes of other threads: syncing and renaming. By default some calls of each scenario are tried, fewer where
it is a whole command; MEMLAB_NIGHTLY=1 tries every one. ``pytest -s`` prints a row of a table for each test.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.examples import NIGHTLY, rest_at_night
from tests.faults.scenarios import SCENARIOS
from tests.faults.worker import DONE, NAMED

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
CALLS = ("write,pwrite64,writev,pwritev,fsync,fdatasync,ftruncate,rename,renameat,renameat2,unlink,unlinkat,rmdir,"
         "mkdir,mkdirat,fallocate,openat")
POINTS, COMMAND_POINTS = 12, 4
KILLED = -9


class Worker:
    """Forks parts of scenarios, some of them traced."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.worker"], cwd=ROOT, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, env={**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"})
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def ask(self, **request: Any) -> int:
        """Send a line and return the number that answers it."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return int(self.process.stdout.readline())

    def do(self, part: str, scenario: str, folder: Path, **more: Any) -> None:
        """Do a part of a scenario that must succeed."""
        log = folder.with_name(f"{folder.name}.{part}")
        status = self.ask(wait=self.ask(part=part, scenario=scenario, folder=str(folder), log=str(log), **more))
        assert status == DONE, log.read_text()

    def act(self, scenario: str, folder: Path, fault: str) -> tuple[int, list[str], str]:
        """Do the work under strace; return its status, the lines of its traced calls, and what it raised."""
        gate, log, calls = (folder.with_name(f"{folder.name}.{name}") for name in ("gate", "log", "calls"))
        os.mkfifo(gate)
        pid = self.ask(part="act", scenario=scenario, folder=str(folder), log=str(log), gate=str(gate))
        inject = ["-e", fault] if fault else []
        tracer = subprocess.Popen(["strace", "-qq", "-y", "-o", str(calls), "-e", f"trace={CALLS}", *inject,
                                   "-p", str(pid)], stderr=subprocess.PIPE, text=True)
        try:
            wait_until_traced(pid, tracer)
        finally:
            gate.write_bytes(b"x")
        stopped = Timer(300, os.kill, (pid, signal.SIGKILL))
        stopped.start()
        status = self.ask(wait=pid)
        assert stopped.is_alive(), "the work hung for five minutes"
        stopped.cancel()
        tracer.communicate(timeout=60)
        return status, calls.read_text(errors="replace").splitlines(), log.read_text() if log.exists() else ""


def wait_until_traced(pid: int, tracer: subprocess.Popen[str]) -> None:
    """Wait until strace holds the main thread of a process; skip where the system forbids it."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if tracer.poll() is not None:
            assert tracer.stderr is not None
            pytest.skip(f"strace cannot trace here: {tracer.stderr.read().strip()}")
        if "TracerPid:\t0" not in Path(f"/proc/{pid}/status").read_text():
            return
        time.sleep(.005)
    raise TimeoutError("strace was not attached within a minute")


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    if not shutil.which("strace"):
        pytest.skip("strace is not here: apt-get install strace")
    one = Worker()
    yield one
    assert one.process.stdin is not None
    one.process.stdin.close()
    one.process.wait(30)


def on_disk(call: str) -> bool:
    """Return whether a traced call writes to a file, not to a pipe or for the wake-up of a thread."""
    if call.startswith("openat(") and not any(flag in call for flag in ("O_WRONLY", "O_RDWR", "O_CREAT")):
        return False
    return not any(kind in call for kind in ("<anon_inode:", "<pipe:", "<socket:", "</dev/"))


def points_of(calls: list[str]) -> list[tuple[str, int]]:
    """Return the calls that concern files, each as its name and number (from 1): strace counts each name alone."""
    points: list[tuple[str, int]] = []
    counts: Counter[str] = Counter()
    for call in calls:
        name = call.partition("(")[0]
        if not call.startswith(("+++", "---")):
            counts[name] += 1
            points += [(name, counts[name])] if on_disk(call) else []
    return points


def some_of(points: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """Return all points, or ``most`` of them at even distances, the first and the last included."""
    if NIGHTLY or len(points) <= most:
        return points
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


@pytest.mark.parametrize("fault", ["error=ENOSPC", "signal=KILL"])
@pytest.mark.parametrize("scenario", rest_at_night(SCENARIOS, [name for name in SCENARIOS if name not in (
    "report", "memory_add", "memory_deprecate")]))
def test_a_fault_at_each_call_that_writes(worker: Worker, tmp_path: Path, scenario: str, fault: str) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    worker.do("prepare", scenario, whole)
    folder = tmp_path / "undisturbed"
    shutil.copytree(whole, folder, symlinks=True)
    status, calls, raised = worker.act(scenario, folder, "")
    assert status == DONE, raised
    worker.do("check", scenario, folder, done=True)
    points = points_of(calls)
    assert len(points) >= 3
    tried = some_of(points, COMMAND_POINTS if scenario in ("run", "report") else POINTS)
    ends: Counter[int] = Counter()
    for name, number in tried:
        folder = tmp_path / f"{name}{number}"
        shutil.copytree(whole, folder, symlinks=True)
        status, calls, raised = worker.act(scenario, folder, f"inject={name}:{fault}:when={number}")
        # threads may move the numbers of calls: another one may have failed, or a reading, which no full disk stops
        failed = [call for call in calls if "(INJECTED)" in call]
        if all(map(on_disk, failed)):
            defined = (DONE, NAMED) if "error" in fault else (DONE, KILLED)
            assert status in defined, (name, number, raised)
        worker.do("check", scenario, folder, done=status == DONE and all(map(on_disk, failed)))
        shutil.rmtree(folder)
        ends[status] += 1
    others = ends.total() - ends[DONE] - ends[NAMED] - ends[KILLED]
    print(f"| {scenario} | {fault} | {len(tried)} of {len(points)} points | {ends[DONE]} done | "
          f"{ends[NAMED]} refused | {ends[KILLED]} killed | {others} others |")
