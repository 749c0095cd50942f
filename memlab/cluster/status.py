"""What has become of each arm of a submitted sweep, told from its folder, its jobs and their logs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from memlab.cluster import local, slurm
from memlab.cluster.schedule import AHEAD
from memlab.cluster.slurm_states import ENDED_WELL, LOST, OUT_OF_MEMORY, State, states
from memlab.cluster.snapshot import Frozen, Job
from memlab.errors import MemlabError
from memlab.harness.results import failure_file
from memlab.runtime.files import read_json

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
    mine = {str(job.step): (job, known.get(job.id, LOST)) for job in jobs  # of a step given twice the last job counts
            if number in job.step.arms and job.step.does in WORKS}
    if any(state.live for _, state in mine.values()):
        ahead = [(AHEAD[job.step.does], known.get(job.id, LOST)) for job in jobs if job.step.does in AHEAD]
        return _under_way(frozen, name, list(mine.values()), [(does, state) for does, state in ahead if state.live])
    return _ended(frozen, name, list(mine.values()), failure_file(folder))


def _under_way(frozen: Frozen, name: str, mine: Sequence[tuple[Job, State]],
               ahead: Sequence[tuple[str, State]]) -> Look:
    """Tell where an arm runs and how far it is, or what it waits for."""
    live = [(job, state) for job, state in mine if state.live]
    running = [(job, state) for job, state in live if state.word in ("RUNNING", "COMPLETING")]
    ids = ", ".join(job.id for job, _ in running or live)
    parts = f"{len(mine) - len(live)} of {len(mine)} jobs ended, " if len(mine) > 1 else ""
    if not running:
        began = "running" if len(live) < len(mine) else "queued"  # between its shards and their merge it is under way
        depends = bool(ahead) and live[0][1].why == "Dependency"
        waits = "waits for the {}, {}".format(*ahead[0]) if depends else f"{parts}{live[0][1]}"
        return Look(name, began, waits, ids)
    job, state = running[0]
    return Look(name, "running", f"{parts}{state}; {_last_line(frozen, job)}".strip("; "), ids)


def _ended(frozen: Frozen, name: str, mine: Sequence[tuple[Job, State]], failed: Path) -> Look:
    """Tell why an arm without a result has none: by its own traceback, else by what became of its job."""
    ids = ", ".join(job.id for job, _ in mine)
    if not mine:
        return Look(name, "lost", "no job was submitted for it")
    if failed.is_file():
        return Look(name, "failed", _raised(failed.read_text(encoding="utf-8", errors="replace")), ids)
    bad = [(job, state) for job, state in mine if state.word != ENDED_WELL]
    if not bad:
        return Look(name, "failed", "its job ended and left no result", ids)
    job, state = bad[0]
    if state == LOST:
        return Look(name, "lost", f"{state}; {_last_line(frozen, job)}".strip("; "), ids)
    if _KILLED_FOR_MEMORY in _log(frozen, job):
        state = State(OUT_OF_MEMORY, state.node)
    return Look(name, "failed", f"{state}; {_lines(_log(frozen, job))}".strip("; "), ids)


def _done(folder: Path) -> str:
    try:
        manifest = read_json(folder / "manifest.json")
    except (OSError, ValueError) as error:
        raise MemlabError(f"the manifest cannot be read ({error})", where=str(folder),
                          fix="remove the folder") from error
    return f"{manifest['total_seconds']:.0f} s, finished {manifest['finished']}"


def _log(frozen: Frozen, job: Job) -> str:
    """Read what a job wrote."""
    places = local.log(frozen, job.step) if job.id.startswith("pid") else slurm.log(frozen, job.id)
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in places if path.is_file())


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


_OWN = re.compile(r"# |submitit (INFO|WARNING|ERROR) |slurmstepd\S*: error: (\*\*\* |Detected )|"
                  r"srun: (error|Terminating)")
"""Lines of submitit and SLURM that repeat what the state says, and the line that says what a job does."""
