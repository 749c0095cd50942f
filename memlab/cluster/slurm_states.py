"""What became of jobs, in SLURM's own words: from its queue, its accounting, or, without that, its short memory."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from memlab.errors import MemlabError

ENDED_WELL, OUT_OF_MEMORY = "COMPLETED", "OUT_OF_MEMORY"

WORDS = {
    "PENDING": "queued", "CONFIGURING": "queued", "REQUEUED": "queued again", "RUNNING": "running",
    "COMPLETING": "running", "SUSPENDED": "suspended", "COMPLETED": "ended", "FAILED": "failed",
    "TIMEOUT": "ran out of time", "OUT_OF_MEMORY": "ran out of memory", "CANCELLED": "cancelled",
    "NODE_FAIL": "its node died", "PREEMPTED": "pre-empted", "BOOT_FAIL": "its node did not start",
    "DEADLINE": "missed its deadline", "LOST": "unknown to SLURM",
}
"""SLURM's states, for people."""

LIVE = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RUNNING", "COMPLETING", "SUSPENDED",
        "STOPPED", "SIGNALING", "STAGE_OUT", "RESIZING", "SPECIAL_EXIT")


@dataclass(frozen=True)
class State:
    """The state of a job: SLURM's word, where it runs or ran, and why it waits or how it ended."""

    word: str
    node: str = ""
    why: str = ""

    @property
    def live(self) -> bool:
        """Whether the job waits or runs."""
        return self.word in LIVE

    def __str__(self) -> str:
        """Describe the state for people.

        >>> str(State("RUNNING", "n1")), str(State("PENDING", why="Dependency")), str(State("OUT_OF_MEMORY"))
        ('running on n1', 'queued (Dependency)', 'ran out of memory')
        """
        told = WORDS.get(self.word, self.word.lower())
        if self.word == "RUNNING" and self.node:
            return f"{told} on {self.node}"
        return f"{told} ({self.why})" if self.why else told


LOST = State("LOST")
"""A job that SLURM knows nothing of: its accounting is off, or has forgotten it."""


class Unreachable(MemlabError):
    """SLURM does not answer: its controller may be restarting."""


def states(ids: Iterable[str]) -> dict[str, State]:
    """Ask for the states of jobs (``12`` or ``12_3``); raises Unreachable where no controller answers."""
    wanted = list(dict.fromkeys(ids))
    found = {name: state for name, state in queued().items() if name in wanted}
    rest = [name for name in wanted if name not in found]
    if rest:
        found |= _accounted(rest)
    for name in rest:
        if name not in found:
            found[name] = _remembered(name)
    if LOST in found.values():
        queued()  # a controller that went away meanwhile has lost no job
    return found


def queued() -> dict[str, State]:
    """Ask the queue for this user's jobs; raises Unreachable."""
    told = _asked("squeue", "-h", "-r", "-u", getpass.getuser(), "-o", "%i|%T|%N|%r")
    if told is None:
        raise Unreachable("squeue does not answer", fix="the jobs go on: ask again when the controller is back")
    found = {}
    for line in told.splitlines():
        name, word, node, why = line.split("|", 3)
        found[name] = State(word, node, "" if why == "None" or word != "PENDING" else why)
    return found


def _accounted(ids: list[str]) -> dict[str, State]:
    """Ask the accounting; nothing where there is none.

    A task that the kernel killed for its memory is told of its step alone: the job itself only failed.
    """
    told = _asked("sacct", "-n", "-P", "-j", ",".join(ids), "-o", "JobID,State,NodeList,ExitCode")
    found: dict[str, State] = {}
    for line in (told or "").splitlines():
        name, word, node, code = line.split("|", 3)
        job, _, step = name.partition(".")
        if job not in ids or not word:
            continue
        if not step:
            found[job] = State(word.split()[0], "" if node == "None assigned" else node, _code(code))
        elif word == OUT_OF_MEMORY and found[job].word == "FAILED":
            found[job] = State(OUT_OF_MEMORY, found[job].node)
    return found


def _remembered(name: str) -> State:
    """Ask the controller, which remembers an ended job for some minutes."""
    told = _asked("scontrol", "-o", "show", "job", name) or ""
    fields = dict(re.findall(r"(\w+)=(\S+)", told))
    if "JobState" not in fields:
        return LOST
    node = fields.get("NodeList", "").replace("(null)", "")
    return State(fields["JobState"], node, _code(fields.get("ExitCode", "")))


def _code(code: str) -> str:
    """Word an exit code, ``status:signal``.

    >>> _code("1:0"), _code("0:9"), _code("0:0")
    ('exit status 1', 'signal 9', '')
    """
    status, _, signal = code.partition(":")
    if signal not in ("", "0"):
        return f"signal {signal}"
    return f"exit status {status}" if status not in ("", "0") else ""


def _asked(*words: str) -> str | None:
    """Run one of SLURM's commands; None where it fails."""
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False,  # noqa: S603
                              env={**os.environ, "SLURM_TIME_FORMAT": "standard"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
