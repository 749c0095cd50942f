"""Management of a testbed's processes: start, search, kill.

A daemon is identified by its open log, not by a stored process id: the system reuses ids, and SLURM's job steps, which
lose their parent, have the log of their node open too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from layout import Layout, say

PROC = Path("/proc")
PROGRAMS = ("munged", "mariadbd", "slurmdbd", "slurmctld", "slurmd", "slurmstepd")
NAMED = ["unshare", "--uts", "sh", "-c", 'hostname localhost && exec "$@"', "testbed"]
"""Prefix that runs a command under the host name localhost."""


class Failed(Exception):
    """A failure with its remedy, as a message for the user."""


def wait_until(what: str, true: Callable[[], bool], seconds: float, log: Path | None = None) -> None:
    """Return once ``true()`` holds; after ``seconds``, raise ``Failed`` with the end of a log."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            told = "\n".join(log.read_text(errors="replace").splitlines()[-15:]) if log and log.exists() else ""
            raise Failed(f"{what}: not within {seconds:g} s" + (f"; last lines of {log}:\n{told}" if told else ""))
        time.sleep(0.05)


def command(layout: Layout, words: list[str]) -> list[str]:
    """Return the command line that runs under the testbed's host name."""
    return words if layout.host == os.uname().nodename.split(".")[0] else [*NAMED, *words]


def start(layout: Layout, daemon: str, words: list[str]) -> None:
    """Start a daemon in a session of its own."""
    with layout.logs(daemon)[1].open("ab") as out:
        subprocess.Popen(command(layout, words), env=layout.environ, cwd=layout.folder,  # noqa: S603 (fixed programs)
                         stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)


def ask(layout: Layout, *words: str, seconds: float = 30) -> str:
    """Return the output of one of SLURM's programs; raise ``Failed`` with its error message."""
    try:
        done = subprocess.run(command(layout, list(words)), env=layout.environ, cwd="/",  # noqa: S603 (fixed programs)
                              capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Failed(f"no answer within {seconds:g} s: {' '.join(words)}") from None
    if done.returncode:
        raise Failed(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip() or done.returncode}")
    return done.stdout


def parents() -> dict[int, int]:
    """Return the parent of every living process; zombies do not count as living."""
    found = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    found[int(entry.name)] = int(parent)
    return found


def _program(pid: int) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(PROC / str(pid) / "exe").rpartition("/")[2].removesuffix(" (deleted)").removesuffix("-wlm")
    return ""


def _holds(pid: int, files: set[str]) -> bool:
    with contextlib.suppress(OSError):
        for link in (PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link).removesuffix(" (deleted)") in files:
                    return True
    return False


def running(layout: Layout, daemon: str) -> list[int]:
    """Return the process ids of a daemon; for a node, also those of its job steps."""
    files = {str(log) for log in layout.logs(daemon)}
    return [pid for pid in parents() if _program(pid) in PROGRAMS and _holds(pid, files)]


def _tasks(layout: Layout, node: str) -> list[int]:
    """Return the processes of jobs on a node, including those whose job step has ended."""
    marks = {f"SLURM_CONF={layout.conf}".encode(), f"SLURMD_NODENAME={node}".encode()}
    found = []
    for pid in parents():
        with contextlib.suppress(OSError):
            if marks <= set((PROC / str(pid) / "environ").read_bytes().split(b"\0")):
                found.append(pid)
    return found


def members(layout: Layout, daemon: str) -> set[int]:
    """Return all processes of a daemon: for a node its slurmd, job steps, their tasks and all descendants."""
    roots = set(running(layout, daemon))
    if daemon not in layout.nodes:
        return roots
    found = roots | set(_tasks(layout, daemon))
    tree = parents()
    while more := {pid for pid, parent in tree.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def kill(layout: Layout, daemons: Iterable[str]) -> None:
    """Kill daemons with all their processes, like a power failure; raise ``Failed`` if a process survives."""
    for daemon in daemons:
        end, first = time.monotonic() + 10, True
        while found := members(layout, daemon):
            if first:
                say(f"killing {daemon}")
                first = False
            if time.monotonic() > end:
                raise Failed(f"{daemon}: processes {sorted(found)} survive SIGKILL")
            for pid in sorted(found, key=lambda one: _program(one) != "slurmd"):   # or slurmd reports its steps' end
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)
