"""Launcher for this machine: each step of a sweep is a process, ``workers`` of them at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from memlab.experiment.cluster.schedule import Step, bundle_arms
from memlab.experiment.cluster.slurm import THREAD_VARIABLES
from memlab.experiment.cluster.snapshot import Job, Snapshot
from memlab.experiment.harness.arm import Arm
from memlab.pipeline.stage import spec_digest, stage
from memlab.support.machine import usable_cores

MAX_NUMBERS = 100
"""Maximum characters for the numbers of arms in the name of a log file; file systems allow 255 in all."""

_POLL = 0.1  # seconds


@stage
class Local:
    """Run arms in parallel processes on this machine.

    Each process gets the same share of the cores and of the arms, and loads data and models once; arms that load the
    same models share a process.
    """

    workers: Annotated[int, Field(ge=1)] | None = None  # processes at a time; null: one for every two cores

    def count(self) -> int:
        """Return the number of processes that run at a time."""
        return self.workers or max(usable_cores() // 2, 1)

    def bundles(self, arms: Sequence[Arm]) -> list[list[int]]:
        """Assign arms, by number, to processes."""
        return bundle_arms(arms, -(-len(arms) // self.count()))

    def run(self, snapshot: Snapshot, levels: Sequence[Sequence[Step]], on_end: Callable[[Job, int], None]) -> None:
        """Run one level after another; ``on_end(job, exit status)`` is called as each process ends.

        An interruption ends the processes; what they finished is kept.
        """
        running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
        try:
            for level in levels:
                waiting = list(level)
                while waiting or running:
                    while waiting and len(running) < self.count():
                        job, process = self._start(snapshot, waiting.pop(0))
                        running[job.id] = (job, process)
                    for name, (job, process) in list(running.items()):
                        if (status := process.poll()) is not None:
                            del running[name]
                            on_end(job, status)
                    time.sleep(_POLL)
        finally:
            for _, process in running.values():
                process.terminate()
            for _, process in running.values():
                process.wait()

    def _start(self, snapshot: Snapshot, step: Step) -> tuple[Job, subprocess.Popen[bytes]]:
        cores = str(max(usable_cores() // self.count(), 1))
        paths = [str(snapshot.source), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, **dict.fromkeys(THREAD_VARIABLES, cores), "PYTHONDONTWRITEBYTECODE": "1",
                       "PYTHONPATH": os.pathsep.join(paths)}
        with log_file(snapshot, step).open("ab") as handle:
            process = subprocess.Popen(  # noqa: S603 (this interpreter, words of our own)
                [sys.executable, "-u", "-m", "memlab.experiment.cluster.worker", str(snapshot.folder), str(step)],
                stdout=handle, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment)
        job = Job(f"pid{process.pid}", step)
        snapshot.add_jobs([job])
        return job, process


def log_file(snapshot: Snapshot, step: Step) -> Path:
    """Return the log file of a step; its name holds the numbers of the arms, or a digest where they are many."""
    numbers = ",".join(map(str, step.arms))
    numbers = numbers if len(numbers) < MAX_NUMBERS else spec_digest(numbers)
    return snapshot.logs / f"{step.task}:{numbers}:{step.part}-of-{step.of}.log"
