"""SLURM: the settings of a profile, the submission of a snapshot by submitit, and the states of its jobs."""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, model_validator

from memlab.experiment.cluster.schedule import Step, bundle_arms
from memlab.experiment.cluster.snapshot import SERVE, Job, Snapshot
from memlab.experiment.cluster.worker import StepCall
from memlab.experiment.harness.arm import Arm
from memlab.pipeline.stage import Names, stage
from memlab.support.errors import MemlabError
from memlab.support.files import disk_faults

COMPLETED, OUT_OF_MEMORY = "COMPLETED", "OUT_OF_MEMORY"

DESCRIPTIONS = {
    "PENDING": "queued", "CONFIGURING": "queued", "REQUEUED": "queued again", "RUNNING": "running",
    "COMPLETING": "running", "SUSPENDED": "suspended", "COMPLETED": "ended", "FAILED": "failed",
    "TIMEOUT": "ran out of time", "OUT_OF_MEMORY": "ran out of memory", "CANCELLED": "cancelled",
    "NODE_FAIL": "its node died", "PREEMPTED": "pre-empted", "BOOT_FAIL": "its node did not start",
    "DEADLINE": "missed its deadline", "LOST": "unknown to SLURM",
}
"""SLURM's states, for people."""

LIVE = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RUNNING", "COMPLETING", "SUSPENDED",
        "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "SPECIAL_EXIT")
"""States of jobs that wait or run."""


@dataclass(frozen=True)
class JobState:
    """The state of a job: SLURM's name for it, the node where it runs or ran, and why it waits or how it ended."""

    name: str
    node: str = ""
    reason: str = ""

    @property
    def live(self) -> bool:
        """Whether the job waits or runs."""
        return self.name in LIVE

    def __str__(self) -> str:
        """Describe the state for people.

        >>> str(JobState("RUNNING", "n1")), str(JobState("PENDING", reason="Dependency")), str(JobState("TIMEOUT"))
        ('running on n1', 'queued (Dependency)', 'ran out of time')
        """
        text = DESCRIPTIONS.get(self.name, self.name.lower())
        if self.name == "RUNNING" and self.node:
            return f"{text} on {self.node}"
        return f"{text} ({self.reason})" if self.reason else text


LOST = JobState("LOST")
"""State of a job that SLURM does not know: accounting is off, or the job is too old."""


class Unreachable(MemlabError):
    """SLURM does not answer: its controller may be restarting."""


def slurm_states(ids: Iterable[str]) -> dict[str, JobState]:
    """Return the states of jobs (``12`` or ``12_3``); raise Unreachable if no controller answers."""
    names = list(dict.fromkeys(ids))
    states = dict.fromkeys(names, LOST) | {name: state for name, state in queued_states().items() if name in names}
    ended = [name for name in names if states[name] == LOST]
    return states | (_accounted_states(ended) if ended else {})


def queued_states() -> dict[str, JobState]:
    """Return the states of this user's jobs in the queue; raise Unreachable if no controller answers."""
    output = _output_of("squeue", "-h", "-r", "-u", getpass.getuser(), "-o", "%i|%T|%N|%r")
    if output is None:
        raise Unreachable("squeue does not answer", fix="the jobs continue: try again when the controller is back")
    states = {}
    for line in output.splitlines():
        job, name, node, reason = line.split("|", 3)
        states[job] = JobState(name, node, "" if reason == "None" or name != "PENDING" else reason)
    return states


def _accounted_states(ids: list[str]) -> dict[str, JobState]:
    """Return the states of the jobs that accounting knows.

    If the kernel kills a task for its memory, only its step is OUT_OF_MEMORY; the job itself is FAILED.
    """
    output = _output_of("sacct", "-n", "-P", "-j", ",".join(ids), "-o", "JobID,State,NodeList,ExitCode")
    states: dict[str, JobState] = {}
    for line in (output or "").splitlines():
        job_step, name, node, code = line.split("|", 3)
        job, _, step = job_step.partition(".")
        if job not in ids or not name:
            continue
        if not step:
            states[job] = JobState(name.split()[0], "" if node == "None assigned" else node, _describe_exit(code))
        elif name == OUT_OF_MEMORY and states[job].name == "FAILED":
            states[job] = JobState(OUT_OF_MEMORY, states[job].node)
    return states


def _describe_exit(code: str) -> str:
    """Describe an exit code, ``status:signal``.

    >>> _describe_exit("1:0"), _describe_exit("0:9"), _describe_exit("0:0")
    ('exit status 1', 'signal 9', '')
    """
    status, _, signal = code.partition(":")
    if signal not in ("", "0"):
        return f"signal {signal}"
    return f"exit status {status}" if status not in ("", "0") else ""


def _output_of(*words: str) -> str | None:
    """Run one of SLURM's commands and return its output; None if it fails."""
    try:
        result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,  # noqa: S603
                              env={**os.environ, "SLURM_TIME_FORMAT": "standard"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout if result.returncode == 0 else None


THREAD_VARIABLES = ("OMP_NUM_THREADS", "POLARS_MAX_THREADS")
"""Environment variables from which numerical libraries take their number of threads."""

Count = Annotated[int, Field(ge=1)]


@stage
class Slurm:
    """The resources that each job of a sweep requests from SLURM, and how arms are bundled into jobs.

    Times are minutes, memory is GB per node. A job that reaches its time limit or is pre-empted gets a signal
    ``signal_delay_s`` seconds before, is queued again, and continues from the store, at most ``max_num_timeout``
    times. The job that serves a model runs ``slurm/serve.sbatch``.
    """

    partition: str | None = None  # null: the cluster's default, also for the following
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None  # a required feature of the nodes
    timeout_min: Count = 240  # a job that reaches it is queued again
    cpus_per_task: Count = 4  # also the number of threads of numerical libraries
    mem_gb: Annotated[float, Field(gt=0)] | None = None
    gpus_per_node: Annotated[int, Field(ge=0)] = 0
    array_parallelism: Count = 64  # maximum number of jobs of a sweep that run at once
    arms_per_job: Count = 1  # maximum number of arms in a job; they load the same models
    max_num_timeout: Annotated[int, Field(ge=0)] = 3  # times that a job may reach its limit or be pre-empted
    signal_delay_s: Annotated[int, Field(ge=1)] = 120  # seconds between the signal to a job and its limit
    setup: Names = ()  # shell lines at the start of a job: module load ..., source .../activate
    python: str | None = None  # null: the Python that submits; "apptainer exec --nv image.sif python" for a container
    options: Names = ()  # further options of sbatch, such as ["--gres=gpu:a100:1", "--exclusive"]
    serve: str | None = None  # a model that another job serves while the sweep runs
    serve_options: Names = ()  # options of sbatch for that job, such as ["--gres=gpu:4", "--mem=200G"]

    @model_validator(mode="after")
    def _options_are_long(self) -> Slurm:
        for word in (*self.options, *self.serve_options):
            if not word.startswith("--"):
                raise ValueError(f"'{word}' is no long option of sbatch, such as --nice=5")
        return self

    @model_validator(mode="after")
    def _signal_leaves_time(self) -> Slurm:
        if self.timeout_min * 60 <= self.signal_delay_s + 60:
            raise ValueError(f"timeout_min={self.timeout_min} leaves no minute before the signal, which comes "
                             f"{self.signal_delay_s} s before the limit: the job would end as it starts")
        return self

    def bundles(self, arms: Sequence[Arm]) -> list[list[int]]:
        """Assign arms, by number, to jobs: those that load the same models share a job."""
        return bundle_arms(arms, self.arms_per_job)

    def submit(self, snapshot: Snapshot, levels: Sequence[Sequence[Step]]) -> list[Job]:
        """Submit all levels, each to start after the one before; cancel all jobs if SLURM refuses one."""
        if shutil.which("sbatch") is None:
            raise MemlabError("there is no sbatch here", where="hydra/launcher=slurm",
                              fix="submit from a login node of the cluster, or leave the launcher out")
        jobs: list[Job] = []
        earlier = [job.id for job in snapshot.jobs()]
        server: list[str] = []
        try:
            if self.serve:
                server.append(self._submit_server(snapshot))
                snapshot.add_jobs([], server=server[0])
            for level in levels:
                last = level[0].task == "report"
                before = [job.id for job in jobs] + (earlier if last else [])
                after = [f"afterany:{name}" for name in sorted({name.partition("_")[0] for name in before}, key=int)]
                new = self._submit_level(snapshot, level, [*after, *(f"after:{name}" for name in server if not last)])
                jobs += new
                snapshot.add_jobs(new)
        except BaseException:
            self.cancel([*(job.id for job in jobs), *server])
            raise
        return jobs

    def _submit_level(self, snapshot: Snapshot, steps: Sequence[Step], after: Sequence[str]) -> list[Job]:
        from submitit import SlurmExecutor
        from submitit.core.utils import FailedJobError, FailedSubmissionError

        executor = SlurmExecutor(folder=snapshot.logs, max_num_timeout=self.max_num_timeout,
                                 python=self.python or shlex.quote(sys.executable))
        executor.update_parameters(**self._parameters(snapshot, steps, after))
        try:
            with disk_faults(snapshot.logs), executor.batch():
                jobs = [executor.submit(StepCall(str(snapshot.folder), str(step))) for step in steps]
        except (FailedJobError, FailedSubmissionError, OSError) as error:
            reason = " ".join(str(error).split())[-400:]
            raise MemlabError(f"SLURM accepted no job: {reason}", where="hydra.launcher",
                              fix="sinfo shows partitions and limits; then set hydra.launcher.partition=... or what "
                                  "SLURM names") from error
        return [Job(job.job_id, step) for job, step in zip(jobs, steps)]

    def _parameters(self, snapshot: Snapshot, steps: Sequence[Step], after: Sequence[str]) -> dict[str, Any]:
        """Return the parameters of submitit's executor; ``after`` are SLURM's dependencies."""
        tasks = " ".join(dict.fromkeys(step.task for step in steps))
        parameters: dict[str, Any] = {
            "job_name": f"memlab {tasks}", "partition": self.partition, "account": self.account,
            "qos": self.qos, "constraint": self.constraint, "time": self.timeout_min,
            "cpus_per_task": self.cpus_per_task, "mem": None if self.mem_gb is None else f"{self.mem_gb * 1024:.0f}MB",
            "gpus_per_node": None if steps[0].task == "report" else self.gpus_per_node or None,
            "signal_delay_s": self.signal_delay_s, "array_parallelism": self.array_parallelism,
            "dependency": ",".join(after) or None,
            "setup": [f"export PYTHONPATH={shlex.quote(str(snapshot.source))}${{PYTHONPATH:+:$PYTHONPATH}}",
                      "export PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1",
                      # otherwise a library takes all cores of the node, or a number from the submitting shell
                      *(f"export {name}={self.cpus_per_task}" for name in THREAD_VARIABLES), *self.setup],
            "additional_parameters": {"requeue": True, **_parse_options(self.options)},
        }
        return {name: value for name, value in parameters.items() if value is not None}

    def _submit_server(self, snapshot: Snapshot) -> str:
        """Submit the job that serves the model; return its id."""
        line = ["sbatch", "--parsable", "--output", str(snapshot.logs / "serve-%j.log"),
                "--time", str(self.timeout_min)]
        settings = {"partition": self.partition, "account": self.account, "qos": self.qos}
        line += [f"--{name}={value}" for name, value in settings.items() if value is not None]
        line += [*self.serve_options, str(snapshot.source / SERVE), str(self.serve)]
        environment = {**os.environ, "MEMLAB_PYTHON": self.python or sys.executable,
                       "PYTHONPATH": str(snapshot.source)}
        result = subprocess.run(line, capture_output=True, text=True, check=False, env=environment)  # noqa: S603
        if result.returncode:
            raise MemlabError(f"SLURM refused the job of the model server: {result.stderr.strip()}",
                              where="hydra.launcher.serve",
                              fix="set hydra.launcher.serve_options to what the cluster requires")
        return result.stdout.strip().partition(";")[0]

    @staticmethod
    def cancel(ids: Sequence[str]) -> None:
        """Cancel jobs; ignore those that SLURM no longer knows."""
        if ids:
            with suppress(OSError):
                subprocess.run(["scancel", *ids], capture_output=True, check=False, timeout=60)  # noqa: S603, S607


def _parse_options(options: Sequence[str]) -> dict[str, str | bool]:
    """Return options of sbatch in submitit's form.

    >>> _parse_options(["--nice=5", "--exclusive"])
    {'nice': '5', 'exclusive': True}
    """
    parts = [word.removeprefix("--").partition("=") for word in options]
    return {name: value if sign else True for name, sign, value in parts}


def log_files(snapshot: Snapshot, job: str) -> list[Path]:
    """Return the files of a job's standard output and standard error."""
    return [snapshot.logs / f"{job}_0_log.{kind}" for kind in ("out", "err")]
