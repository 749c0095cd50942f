"""SLURM as a launcher: the settings of a profile, and the submission of a frozen sweep by submitit."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from memlab.cluster.schedule import Step, packed
from memlab.cluster.snapshot import SERVE, Frozen, Job
from memlab.cluster.worker import Work
from memlab.errors import MemlabError
from memlab.harness.arm import Arm
from memlab.models.chat.protocol import Chat
from memlab.models.protocols import models_in
from memlab.stage import Names, spec_digest, stage

THREADS = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS")
"""What tells numerical libraries how many cores are theirs."""

Count = Annotated[int, Field(ge=1)]


@stage
class Slurm:
    """What every job of a sweep asks of SLURM, and how arms are put into jobs.

    Times are minutes, memory is GB a node; null leaves a question to the cluster's default. ``arms_per_job`` packs
    arms that load the same models into one job. ``serve`` names a model that a further job serves while the sweep
    runs (``slurm/serve.sbatch``). A job that comes to its time limit, or is pre-empted, is told so
    ``signal_delay_s`` before, queued again, and goes on from the store, at most ``max_num_timeout`` times.
    """

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    timeout_min: Count = 240
    cpus_per_task: Count = 4
    mem_gb: Annotated[float, Field(gt=0)] | None = None
    gpus_per_node: Annotated[int, Field(ge=0)] = 0
    array_parallelism: Count = 64
    arms_per_job: Count = 1
    max_num_timeout: Annotated[int, Field(ge=0)] = 3
    signal_delay_s: Annotated[int, Field(ge=1)] = 120
    setup: Names = ()
    python: str | None = None
    options: Names = ()
    serve: str | None = None
    serve_options: Names = ()

    @model_validator(mode="after")
    def _options_are_words_of_sbatch(self) -> Slurm:
        for word in (*self.options, *self.serve_options):
            if not word.startswith("--"):
                raise ValueError(f"'{word}' is no long option of sbatch, such as --nice=5")
        return self

    @model_validator(mode="after")
    def _time_to_be_told(self) -> Slurm:
        if self.timeout_min * 60 <= self.signal_delay_s + 60:
            raise ValueError(f"timeout_min={self.timeout_min} leaves no minute before the warning that comes "
                             f"{self.signal_delay_s} s ahead of the limit: the job would end as it starts")
        return self

    def packs(self, arms: Sequence[Arm]) -> list[list[int]]:
        """Put arms into jobs, by number: those that load the same models together."""
        return packed([models(arm) for arm in arms], self.arms_per_job)

    def submit(self, frozen: Frozen, waves: Sequence[Sequence[Step]]) -> list[Job]:
        """Submit every wave, each after the one before; cancel all again where one is refused."""
        if shutil.which("sbatch") is None:
            raise MemlabError("there is no sbatch here", where="hydra/launcher=slurm",
                              fix="submit from a login node of the cluster, or leave the launcher out")
        jobs: list[Job] = []
        elsewhere = [job.id for job in frozen.jobs()]
        server: list[str] = []
        try:
            if self.serve:
                server.append(self._serve(frozen))
                frozen.record([], server=server[0])
            for wave in waves:
                last = wave[0].does == "report"
                ahead = [job.id for job in jobs] + (elsewhere if last else [])
                after = [f"afterany:{name}" for name in sorted({name.partition("_")[0] for name in ahead}, key=int)]
                new = self._wave(frozen, wave, [*after, *(f"after:{name}" for name in server if not last)])
                jobs += new
                frozen.record(new)
        except BaseException:
            self.cancel([*(job.id for job in jobs), *server])
            raise
        return jobs

    def _wave(self, frozen: Frozen, steps: Sequence[Step], after: Sequence[str]) -> list[Job]:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        executor = SlurmExecutor(folder=frozen.logs, max_num_timeout=self.max_num_timeout, python=self._python())
        executor.update_parameters(**self._parameters(frozen, steps, after))
        try:
            with executor.batch():
                made = [executor.submit(Work(str(frozen.folder), str(step))) for step in steps]
        except (FailedJobError, FailedSubmissionError, OSError) as error:
            said = " ".join(str(error).split())[-400:]
            raise MemlabError(f"SLURM took no job: {said}", where="hydra.launcher",
                              fix="sinfo shows partitions and limits; then set hydra.launcher.partition=... or what "
                                  "SLURM names") from error
        return [Job(job.job_id, step) for job, step in zip(made, steps)]

    def _parameters(self, frozen: Frozen, steps: Sequence[Step], after: Sequence[str]) -> dict[str, Any]:
        does = " ".join(dict.fromkeys(step.does for step in steps))
        asked: dict[str, Any] = {
            "job_name": f"memlab {does}", "partition": self.partition, "account": self.account,
            "qos": self.qos, "constraint": self.constraint, "time": self.timeout_min,
            "cpus_per_task": self.cpus_per_task, "mem": None if self.mem_gb is None else f"{self.mem_gb * 1024:.0f}MB",
            "gpus_per_node": None if steps[0].does == "report" else self.gpus_per_node or None,
            "signal_delay_s": self.signal_delay_s, "array_parallelism": self.array_parallelism,
            "dependency": ",".join(after) or None,
            "setup": [f"export PYTHONPATH={shlex.quote(str(frozen.source))}${{PYTHONPATH:+:$PYTHONPATH}}",
                      "export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1",
                      # else a library takes all cores of the node, or what the submitting shell happened to set
                      *(f"export {name}={self.cpus_per_task}" for name in THREADS), *self.setup],
            "additional_parameters": {"requeue": True, **_named(self.options)},
        }
        return {name: value for name, value in asked.items() if value is not None}

    def _python(self) -> str:
        return self.python or shlex.quote(sys.executable)

    def _serve(self, frozen: Frozen) -> str:
        """Start the model's server as a job of its own; return its id."""
        line = ["sbatch", "--parsable", "--output", str(frozen.logs / "serve-%j.log"), "--time", str(self.timeout_min)]
        asked = {"partition": self.partition, "account": self.account, "qos": self.qos}
        line += [f"--{name}={value}" for name, value in asked.items() if value is not None]
        line += [*self.serve_options, str(frozen.source / SERVE), str(self.serve)]
        outer = {**os.environ, "MEMLAB_PYTHON": self.python or sys.executable, "PYTHONPATH": str(frozen.source)}
        told = subprocess.run(line, capture_output=True, text=True, check=False, env=outer)  # noqa: S603
        if told.returncode:
            raise MemlabError(f"SLURM took no job for the server: {told.stderr.strip()}", where="hydra.launcher.serve",
                              fix="set hydra.launcher.serve_options to what the cluster asks for")
        return told.stdout.strip().partition(";")[0]

    @staticmethod
    def cancel(ids: Sequence[str]) -> None:
        """Cancel jobs, as far as SLURM still knows them."""
        if ids:
            with suppress(OSError):
                subprocess.run(["scancel", *ids], capture_output=True, check=False, timeout=60)  # noqa: S603, S607


def _named(options: Sequence[str]) -> dict[str, str | bool]:
    """Read options of sbatch as submitit wants them.

    >>> _named(["--nice=5", "--exclusive"])
    {'nice': '5', 'exclusive': True}
    """
    parts = [word.removeprefix("--").partition("=") for word in options]
    return {name: value if sign else True for name, sign, value in parts}


def models(arm: Arm) -> str:
    """Digest the models that an arm loads, so that arms of the same models can share a job."""
    mine = models_in([stage for _, stage in arm.pipeline.stages()])
    return spec_digest(sorted({spec_digest(model) for model in mine if not isinstance(model, Chat)}))


def log(frozen: Frozen, job: str) -> list[Path]:
    """Where a job writes: what it prints, and what it complains of."""
    return [frozen.logs / f"{job}_0_log.{kind}" for kind in ("out", "err")]
