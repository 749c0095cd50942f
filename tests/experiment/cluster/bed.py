"""The SLURM testbed for tests: states of jobs, faults of a cluster, memlab's command lines."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.small import on_lives

SCRIPT = Path(__file__).resolve().parents[3] / "slurm" / "testbed" / "testbed"
T = TypeVar("T")


def command(*line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run ``slurm/testbed/testbed``."""
    return subprocess.run([str(SCRIPT), *line, "--dir", str(folder)], capture_output=True, text=True, timeout=3000)


def wait_until(condition: Callable[[], T], seconds: float = 300, what: str = "") -> T:
    """Return the first true value of ``condition()``; fail after ``seconds``."""
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end, f"{what or condition} not within {seconds:g} s"
        time.sleep(0.2)
    return value


@dataclass(frozen=True)
class Bed:
    """A running testbed."""

    folder: Path

    def do(self, *line: str) -> str:
        """Run a command of the testbed that must succeed, such as ``do("node", "n2", "off")``."""
        done = command(*line, folder=self.folder)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, *line: str) -> str:
        """Return the output of one of SLURM's programs."""
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=self.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def accepts(self, *line: str) -> bool:
        """Return whether SLURM accepts a command; just after a restart the controller refuses some."""
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, env=self.environ)
        print(done.stderr, end="", file=sys.stderr)   # shown if the test fails
        return done.returncode == 0

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def processes(self) -> dict[str, list[int]]:
        """Return the process ids of each daemon; a node's include those of its jobs."""
        output = command("status", folder=self.folder).stdout
        return {words[0]: [int(pid) for pid in words[2:]] for words in map(str.split, output.splitlines())}

    def nodes(self) -> dict[str, str]:
        """Return the state of each node, such as ``idle`` or ``down*``."""
        return dict(line.split() for line in self.ask("sinfo", "-hNp", "main", "-o", "%N %T").splitlines())

    def submit(self, script: str, *options: str, log: Path) -> str:
        """Submit a shell script; return the job's id. What it prints is appended to ``log``."""
        own = ["--parsable", f"--output={log}", "--open-mode=append", *options]
        done = subprocess.run(["sbatch", *own], input=f"#!/bin/bash\n{script}\n", text=True, capture_output=True,
                              timeout=300, env=self.environ, cwd=log.parent)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def job(self, job: str) -> dict[str, str]:
        """Return the controller's fields of a job: ``JobState``, ``Reason``, ``Restarts``, ``ExitCode``, ..."""
        output = self.ask("scontrol", "-o", "show", "job", job)
        return dict(word.split("=", 1) for word in output.split() if "=" in word)

    def state(self, job: str) -> str:
        """Return the state of a job by the controller, such as ``RUNNING``."""
        return self.job(job)["JobState"]

    def accounted(self, job: str) -> list[str]:
        """Return the states of a job's starts by accounting, oldest first: a requeued job has several."""
        rows = self.ask("sacct", "-D", "-X", "-n", "-P", "-j", job, "-o", "submit,state").splitlines()
        return [row.split("|")[1].split()[0] for row in sorted(rows)]

    def tidy(self) -> None:
        """Cancel all jobs, start all nodes and the controller again, wait for an idle cluster."""
        self.do("controller", "on")
        for name in [name for name, state in self.nodes().items() if state != "idle"]:
            self.do("node", name, "on")
        wait_until(lambda: self.accepts("scancel", "--user=root") and not self.ask("squeue", "-h"), what="no job left")
        wait_until(lambda: set(self.nodes().values()) == {"idle"}, 300, "idle nodes")


def command_line(module: str, *words: str, root: Path) -> list[str]:
    """Return the command line of ``python -m memlab.<module>`` on tiny lives, with all files below ``root``."""
    return [sys.executable, "-m", f"memlab.{module}", *on_lives(root, *words)]


def memlab(module: str, *words: str, root: Path) -> subprocess.CompletedProcess[str]:
    """Run ``python -m memlab.<module>`` on tiny lives in ``root``, with all files below it."""
    return subprocess.run(command_line(module, *words, root=root), cwd=root, capture_output=True, text=True,
                          timeout=1200, env={**os.environ, "OMP_NUM_THREADS": "1"})
