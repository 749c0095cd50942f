"""The cores of one machine as a launcher: every step of a sweep is a process, so many of them at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from memlab.cluster.schedule import Step, packed
from memlab.cluster.slurm import THREADS, models
from memlab.cluster.snapshot import Frozen, Job
from memlab.harness.arm import Arm
from memlab.runtime.cores import usable_cores
from memlab.stage import spec_digest, stage

MOST = 100
"""Letters of a log's name that arms may take; file systems take 255 in all."""

_POLL = 0.1  # seconds between two looks at the processes


@stage
class Local:
    """Run arms side by side on this machine, ``workers`` processes at a time; null: one for every two cores.

    Each process is told its share of the cores. As many arms as that leaves to each worker go into one process, so
    that data and models are loaded once for them; arms that load the same models stand together.
    """

    workers: Annotated[int, Field(ge=1)] | None = None

    def count(self) -> int:
        """How many processes run at a time."""
        return self.workers or max(usable_cores() // 2, 1)

    def packs(self, arms: Sequence[Arm]) -> list[list[int]]:
        """Put arms into processes, by number."""
        return packed([models(arm) for arm in arms], -(-len(arms) // self.count()))

    def run(self, frozen: Frozen, waves: Sequence[Sequence[Step]], told: Callable[[Job, int], None]) -> None:
        """Run the waves one after another; ``told(job, exit status)`` is called as each process ends.

        An interruption ends the processes; what they finished is kept.
        """
        running: dict[str, tuple[Job, subprocess.Popen[bytes]]] = {}
        try:
            for wave in waves:
                waiting = list(wave)
                while waiting or running:
                    while waiting and len(running) < self.count():
                        job, process = self._start(frozen, waiting.pop(0))
                        running[job.id] = (job, process)
                    for name, (job, process) in list(running.items()):
                        if (status := process.poll()) is not None:
                            del running[name]
                            told(job, status)
                    time.sleep(_POLL)
        finally:
            for _, process in running.values():
                process.terminate()
            for _, process in running.values():
                process.wait()

    def _start(self, frozen: Frozen, step: Step) -> tuple[Job, subprocess.Popen[bytes]]:
        share = str(max(usable_cores() // self.count(), 1))
        environment = {**os.environ, **dict.fromkeys(THREADS, share), "PYTHONDONTWRITEBYTECODE": "1",
                       "PYTHONPATH": os.pathsep.join(
                           [str(frozen.source), *filter(None, [os.environ.get("PYTHONPATH")])])}
        with log(frozen, step)[0].open("ab") as handle:
            process = subprocess.Popen(  # noqa: S603 (this interpreter, words of our own)
                [sys.executable, "-u", "-m", "memlab.cluster.worker", str(frozen.folder), str(step)],
                stdout=handle, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment)
        job = Job(f"pid{process.pid}", step)
        frozen.record([job])
        return job, process


def log(frozen: Frozen, step: Step) -> list[Path]:
    """Where the process of a step writes; the name holds its arms' numbers, or a digest where they are many."""
    arms = ",".join(map(str, step.arms))
    arms = arms if len(arms) < MOST else spec_digest(arms)
    return [frozen.logs / f"{step.does}:{arms}:{step.part}-of-{step.of}.log"]
