"""States of SLURM jobs: from the queue, else from accounting, else from the controller's short memory."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from memlab.errors import MemlabError

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
    states = {name: state for name, state in queued_states().items() if name in names}
    rest = [name for name in names if name not in states]
    if rest:
        states |= _accounted_states(rest)
    for name in rest:
        if name not in states:
            states[name] = _controller_state(name)
    if LOST in states.values():
        queued_states()  # raises if the controller has stopped since: then no job is lost
    return states


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


def _controller_state(job: str) -> JobState:
    """Return the state that the controller reports; it remembers an ended job for some minutes."""
    output = _output_of("scontrol", "-o", "show", "job", job) or ""
    fields = dict(re.findall(r"(\w+)=(\S+)", output))
    if "JobState" not in fields:
        return LOST
    node = fields.get("NodeList", "").replace("(null)", "")
    return JobState(fields["JobState"], node, _describe_exit(fields.get("ExitCode", "")))


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
