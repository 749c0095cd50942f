"""What has become of each arm of a submitted sweep, told from its folder, its jobs and their logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from memlab.cluster import local, slurm
from memlab.cluster.frozen import Frozen, Job
from memlab.cluster.states import ENDED_WELL, LOST, OUT_OF_MEMORY, State, states
from memlab.errors import MemlabError
from memlab.manifest import read_json
from memlab.track.failure import failure_file

WORKS = ("arms", "shard", "merge")
"""Steps that belong to arms of their own."""

_KILLED_FOR_MEMORY = "exceeded memory limit"
"""What SLURM writes into the log of a job that it kills by sampling, where no cgroup holds it; the state is FAILED."""

LINES = 3
"""Lines of a failed arm's log that are shown."""


@dataclass(frozen=True)
class Look:
    """One arm: its name, what has become of it (done, queued, running, failed, lost), and what there is to say."""

    arm: str
    state: str
    told: str
    job: str = ""

    @property
    def live(self) -> bool:
        """Whether a job for it still waits or runs."""
        return self.state in ("queued", "running")


def looks(frozen: Frozen, known: Mapping[str, State] | None = None) -> list[Look]:
    """Look at every arm of a sweep; ``known`` are the states of its jobs, asked for unless given.

    Raises ``states.Unreachable`` where SLURM does not answer.
    """
    jobs = frozen.jobs()
    known = job_states(jobs) if known is None else known
    return [_look(frozen, number, one, jobs, known) for number, one in enumerate(frozen.note()["arms"])]


def job_states(jobs: Iterable[Job]) -> dict[str, State]:
    """Ask for the states of jobs, SLURM's or processes of this machine; raises ``states.Unreachable``."""
    names = [job.id for job in jobs]
    own = {name: State("RUNNING") if psutil.pid_exists(int(name[3:])) else State("FAILED", why="its process is gone")
           for name in names if name.startswith("pid")}
    asked = [name for name in names if name not in own]
    return own | (states(asked) if asked else {})


def _look(frozen: Frozen, number: int, one: dict[str, Any], jobs: list[Job], known: Mapping[str, State]) -> Look:
    folder, name = Path(one["folder"]), str(one["name"])
    if (folder / "manifest.json").is_file():
        return Look(name, "done", _done(folder))
    mine = [job for job in jobs if number in job.step.arms and job.step.does in WORKS]
    last = {str(job.step): job for job in mine}  # a step that was submitted again counts by its last job
    failed = failure_file(folder)
    states_of = [(job, known.get(job.id, LOST)) for job in last.values()]
    live = [(job, state) for job, state in states_of if state.live]
    running = [(job, state) for job, state in live if state.word in ("RUNNING", "COMPLETING")]
    names = ", ".join(job.id for job, _ in running or live or states_of)
    before = next((state for job, state in ((j, known.get(j.id, LOST)) for j in jobs) if job.step.does == "prepare"
                   and state.live), None)
    if running:
        ended, (job, state) = len(states_of) - len(live), running[0]
        parts = f"{ended} of {len(states_of)} jobs ended, " if len(states_of) > 1 else ""
        return Look(name, "running", f"{parts}{state}; {_last_line(frozen, job)}".strip("; "), names)
    if live:
        why = f"waits for the preparation, {before}" if before else str(live[0][1])
        return Look(name, "queued", why, names)
    if failed.is_file():
        return Look(name, "failed", _raised(failed.read_text(encoding="utf-8", errors="replace")), names)
    bad = [(job, state) for job, state in states_of if state.word != ENDED_WELL]
    if not bad:
        return Look(name, "failed" if states_of else "lost", "its job ended and left no result" if states_of else
                    "no job was submitted for it", names)
    job, state = bad[0]
    if _KILLED_FOR_MEMORY in _log(frozen, job):
        state = State(OUT_OF_MEMORY, state.node)
    if state.word == LOST.word:
        return Look(name, "lost", f"{state}; {_last_line(frozen, job)}".strip("; "), names)
    return Look(name, "failed", f"{state}; {_lines(_log(frozen, job))}".strip("; "), names)


def _done(folder: Path) -> str:
    try:
        manifest = read_json(folder / "manifest.json")
    except (OSError, ValueError) as error:
        raise MemlabError(f"the manifest cannot be read ({error})", where=str(folder),
                          fix="remove the folder") from error
    return f"{manifest['total_seconds']:.0f} s, finished {manifest['finished']}"


def logs_of(frozen: Frozen, job: Job) -> list[Path]:
    """Where a job writes."""
    return local.log(frozen, job.step) if job.id.startswith("pid") else slurm.log(frozen, job.id)


def _log(frozen: Frozen, job: Job) -> str:
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in logs_of(frozen, job) if path.is_file()]
    return "\n".join(texts)


def _last_line(frozen: Frozen, job: Job) -> str:
    return _lines(_log(frozen, job), 1)


def _raised(traceback: str) -> str:
    """Return what a traceback ends with: the exception and its message, whatever the number of its lines."""
    lines = traceback.strip().splitlines()
    last = max((n for n, line in enumerate(lines) if line[:1].strip()), default=0)
    return "\n".join(lines[last:])


def _lines(text: str, most: int = LINES) -> str:
    """Return the last lines that say something; the launcher's own are left out."""
    said = [line.strip() for line in text.splitlines() if line.strip() and not _OWN.match(line)]
    return "\n".join(said[-most:])


_OWN = re.compile(r"submitit (INFO|WARNING|ERROR) |slurmstepd: error: \*\*\* |srun: (error|Terminating)")
"""Lines of submitit and SLURM that repeat what the state says."""
