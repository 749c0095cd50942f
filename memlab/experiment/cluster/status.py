"""Status of each arm of a submitted sweep, from its run folder, its jobs and their logs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from memlab.experiment.cluster import local, slurm
from memlab.experiment.cluster.schedule import SHARED_TASKS
from memlab.experiment.cluster.slurm import COMPLETED, LOST, OUT_OF_MEMORY, JobState, slurm_states
from memlab.experiment.cluster.snapshot import Job, Snapshot
from memlab.experiment.harness.results import failure_file
from memlab.support.errors import MemlabError
from memlab.support.foreign import read_json

STATES = ("done", "running", "queued", "failed", "lost")

ARM_TASKS = ("arms", "shard", "merge")
"""Tasks that run arms."""

_KILLED_FOR_MEMORY = "exceeded memory limit"
"""SLURM's line in the log of a job that it kills by sampling, where no cgroup limits it; the job's state is FAILED."""

_LAUNCHER_LINE = re.compile(r"# |submitit (INFO|WARNING|ERROR) |slurmstepd\S*: error: (\*\*\* |Detected )|"
                            r"srun: (error|Terminating)")
"""Lines of submitit and SLURM that only repeat the state, and the line that names the step."""


@dataclass(frozen=True)
class ArmStatus:
    """One arm: its name, its state (done, queued, running, failed, lost), a message, and the ids of its jobs."""

    arm: str
    state: str
    message: str
    job: str = ""

    @property
    def live(self) -> bool:
        """Whether a job of the arm waits or runs."""
        return self.state in ("queued", "running")


def arm_statuses(snapshot: Snapshot, states: Mapping[str, JobState] | None = None) -> list[ArmStatus]:
    """Return the status of each arm of a sweep; ``states`` of its jobs are looked up unless given.

    Raises Unreachable if SLURM does not answer.
    """
    jobs = snapshot.jobs()
    states = job_states(jobs) if states is None else states
    return [_status(snapshot, number, arm, jobs, states) for number, arm in enumerate(snapshot.metadata()["arms"])]


def count_states(arms: Iterable[ArmStatus]) -> str:
    """Return the number of arms in each state, in words.

    >>> count_states([ArmStatus("a", "done", ""), ArmStatus("b", "queued", ""), ArmStatus("c", "done", "")])
    '2 done, 1 queued'
    """
    counts = Counter(arm.state for arm in arms)
    return ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state])


def job_states(jobs: Iterable[Job]) -> dict[str, JobState]:
    """Return the states of SLURM's jobs and of processes on this machine; raise Unreachable if SLURM is silent."""
    ids = [job.id for job in jobs]
    states = {name: JobState("RUNNING") if psutil.pid_exists(int(name[3:])) else
              JobState("FAILED", reason="its process is gone") for name in ids if name.startswith("pid")}
    rest = [name for name in ids if name not in states]
    return states | (slurm_states(rest) if rest else {})


def _status(snapshot: Snapshot, number: int, arm: dict[str, Any], jobs: list[Job],
            states: Mapping[str, JobState]) -> ArmStatus:
    folder, name = Path(arm["folder"]), str(arm["name"])
    if (folder / "manifest.json").is_file():
        return ArmStatus(name, "done", _duration(folder))
    by_step = {str(job.step): (job, states.get(job.id, LOST)) for job in jobs  # the last job of a repeated step counts
               if number in job.step.arms and job.step.task in ARM_TASKS}
    mine = list(by_step.values())
    if any(state.live for _, state in mine):
        shared = [(SHARED_TASKS[job.step.task], states.get(job.id, LOST)) for job in jobs
                  if job.step.task in SHARED_TASKS]
        return _live_status(snapshot, name, mine, [(task, state) for task, state in shared if state.live])
    return _ended_status(snapshot, name, mine, failure_file(folder))


def _live_status(snapshot: Snapshot, name: str, mine: Sequence[tuple[Job, JobState]],
                 shared: Sequence[tuple[str, JobState]]) -> ArmStatus:
    """Return the node and the progress of an arm, or what it waits for."""
    live = [(job, state) for job, state in mine if state.live]
    running = [(job, state) for job, state in live if state.name in ("RUNNING", "COMPLETING")]
    ids = ", ".join(job.id for job, _ in running or live)
    progress = f"{len(mine) - len(live)} of {len(mine)} jobs ended, " if len(mine) > 1 else ""
    if not running:
        arm_state = "running" if len(live) < len(mine) else "queued"  # it is running between its shards and their merge
        depends = bool(shared) and live[0][1].reason == "Dependency"
        message = "waits for the {}, {}".format(*shared[0]) if depends else f"{progress}{live[0][1]}"
        return ArmStatus(name, arm_state, message, ids)
    job, state = running[0]
    return ArmStatus(name, "running", _join(f"{progress}{state}", _last_lines(_log(snapshot, job), 1)), ids)


def _ended_status(snapshot: Snapshot, name: str, mine: Sequence[tuple[Job, JobState]], failed: Path) -> ArmStatus:
    """Return why an arm has no result, from its own traceback or else from the state of its job."""
    ids = ", ".join(job.id for job, _ in mine)
    if not mine:
        return ArmStatus(name, "lost", "no job was submitted for it")
    if failed.is_file():
        return ArmStatus(name, "failed", _exception(failed.read_text(encoding="utf-8", errors="replace")), ids)
    job, state = next(((job, state) for job, state in mine if state.name != COMPLETED), mine[0])
    if state.name == COMPLETED:
        return ArmStatus(name, "failed", "its job ended and left no result", ids)
    log = _log(snapshot, job)
    if state == LOST:
        return ArmStatus(name, "lost", _join(str(state), _last_lines(log, 1)), ids)
    if _KILLED_FOR_MEMORY in log:
        state = JobState(OUT_OF_MEMORY, state.node)
    return ArmStatus(name, "failed", _join(str(state), _last_lines(log)), ids)


def _join(state: str, lines: str) -> str:
    return f"{state}; {lines}" if lines else state


def _duration(folder: Path) -> str:
    try:
        manifest = read_json(folder / "manifest.json")
    except (OSError, ValueError) as error:
        raise MemlabError(f"the manifest cannot be read ({error})", where=str(folder),
                          fix="remove the folder") from error
    return f"{manifest['total_seconds']:.0f} s, finished {manifest['finished']}"


def _log(snapshot: Snapshot, job: Job) -> str:
    """Return the text of a job's log files."""
    files = [local.log_file(snapshot, job.step)] if job.id.startswith("pid") else slurm.log_files(snapshot, job.id)
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())


def _exception(traceback: str) -> str:
    """Return the exception at the end of a traceback, with all lines of its message."""
    lines = traceback.strip().splitlines()
    last = max((n for n, line in enumerate(lines) if line[:1].strip()), default=0)
    return "\n".join(lines[last:])


def _last_lines(text: str, count: int = 3) -> str:
    """Return the last lines with content, without those of the launcher."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _LAUNCHER_LINE.match(line)]
    return "\n".join(lines[-count:])
