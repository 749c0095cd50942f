"""Submission of a sweep to SLURM or to local processes, and the wait for its last job."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from rich.markup import escape

from memlab.cluster.local import Local
from memlab.cluster.precompute import asks_before_search, shared_groups
from memlab.cluster.schedule import SHARED_TASKS, Step, levels
from memlab.cluster.slurm import JobState, Slurm, Unreachable
from memlab.cluster.snapshot import Job, Snapshot, sweeps, take_snapshot
from memlab.cluster.status import ARM_TASKS, arm_statuses, job_states
from memlab.harness.arm import Arm
from memlab.harness.results import failure_file
from memlab.runtime.console import Console
from memlab.runtime.machine import OF_A_RUN

POLL, PATIENCE = 10.0, 600.0
"""Maximum seconds between two requests to SLURM (fewer in the first minutes of a sweep), and seconds to wait for a
controller that does not answer."""


def submit(launcher: Slurm, arms: Sequence[Arm], words: Sequence[str], store: str | None, shards: int,
           out: Console) -> Snapshot | None:
    """Submit the arms that are neither finished nor under way in an earlier sweep; None if all are finished."""
    if all(arm.finished() for arm in arms):
        return None
    earlier = jobs_under_way(arms)
    missing = [n for n, arm in enumerate(arms) if not arm.finished() and n not in earlier]
    steps = _levels(launcher, arms, missing, shards)
    snapshot = take_snapshot(arms, words, store, shards)
    snapshot.add_jobs([job for jobs in earlier.values() for job in jobs])
    _remove_failures([arms[n] for n in missing])
    try:
        jobs = launcher.submit(snapshot, steps)
    except BaseException:
        shutil.rmtree(snapshot.folder, ignore_errors=True)  # none of its jobs runs
        raise
    for number, running in earlier.items():
        out.print(f"  [dim]{escape(arms[number].name)}: under way in job {running[0].id}[/dim]")
    for task in dict.fromkeys(job.step.task for job in jobs):
        ids = [job.id for job in jobs if job.step.task == task]
        out.print(f"  {task}: {len(ids)} job{'s' if len(ids) > 1 else ''}, {_span(ids)}")
    return snapshot


def _levels(launcher: Slurm | Local, arms: Sequence[Arm], missing: Sequence[int], shards: int) -> list[list[Step]]:
    """Lay out the missing arms, by their numbers in the sweep; where arms are sharded, each part is a job."""
    bundles = [[missing[at] for at in bundle] for bundle in launcher.bundles([arms[n] for n in missing])]
    if shards > 1:
        bundles = [[n] for bundle in bundles for n in bundle]
    writers = [n for bundle in bundles for n in bundle if asks_before_search(arms[n])]
    return levels(bundles, len(arms), shards, shared_groups(arms, bundles), writers)


def _remove_failures(arms: Sequence[Arm]) -> None:
    """Remove the records of earlier failures, so that the status shows how the new jobs end."""
    for arm in arms:
        with suppress(OSError):
            failure_file(arm.folder()).unlink()


def jobs_under_way(arms: Sequence[Arm]) -> dict[int, list[Job]]:
    """Return the jobs of arms that wait or run in an earlier sweep, by the arms' numbers in this one."""
    numbers = {str(arm.folder().resolve()): n for n, arm in enumerate(arms) if not arm.finished()}
    running: dict[int, list[Job]] = {}
    for snapshot in sweeps(arms[0].out.resolve()):
        folders = [arm["folder"] for arm in snapshot.metadata()["arms"]]
        renumbered = [(old_number, numbers[folder]) for old_number, folder in enumerate(folders) if folder in numbers]
        jobs = snapshot.jobs() if renumbered else []
        states = job_states(jobs)
        for old_number, number in renumbered:
            live = [job for job in jobs
                    if old_number in job.step.arms and job.step.task in ARM_TASKS and states[job.id].live]
            if live and number not in running:
                running[number] = [Job(job.id, Step("arms", (number,), i, len(live))) for i, job in enumerate(live)]
    return running


def wait(snapshot: Snapshot, out: Console) -> None:
    """Wait until every job of a sweep has ended, and print each change of state."""
    try:
        _watch(snapshot, out)
    except KeyboardInterrupt:
        ids = " ".join(dict.fromkeys(job.id.partition("_")[0] for job in snapshot.jobs()))
        out.print(f"\nthe jobs continue: memlab status shows them, scancel {ids} ends them")
        raise


def _watch(snapshot: Snapshot, out: Console) -> None:
    printed: dict[str, str] = {}
    start = last_answer = time.monotonic()
    while True:
        pause = min(POLL, 1 + (time.monotonic() - start) / 20)
        jobs = snapshot.jobs()
        try:
            states = job_states(jobs)
            last_answer = time.monotonic()
        except Unreachable as error:
            if time.monotonic() - last_answer > PATIENCE:
                raise
            _print_change(printed, "SLURM", f"{error.what}; waiting", out)
            time.sleep(pause)
            continue
        printed.pop("SLURM", None)
        _print_changes(snapshot, jobs, states, printed, out)
        if not any(state.live for state in states.values()):
            return
        time.sleep(pause)


def _print_changes(snapshot: Snapshot, jobs: Sequence[Job], states: dict[str, JobState], printed: dict[str, str],
                   out: Console) -> None:
    for job in jobs:
        if job.step.task in (*SHARED_TASKS, "report"):
            _print_change(printed, job.step.name, str(states[job.id]), out)
    for status in arm_statuses(snapshot, states):
        message = status.state if status.live else f"{status.state}: {status.message}".strip(": ")
        _print_change(printed, status.arm, message, out)


def _print_change(printed: dict[str, str], name: str, message: str, out: Console) -> None:
    """Print the message of an arm or a job unless it is the last one printed for it."""
    if printed.get(name) != message:
        printed[name] = message
        out.print(f"  {escape(name)}: {escape(message)}")


def run_local(launcher: Local, arms: Sequence[Arm], words: Sequence[str], store: str | None, shards: int,
              out: Console) -> None:
    """Run the missing arms in processes of this machine; the report is left to the caller."""
    missing = [n for n, arm in enumerate(arms) if not arm.finished()]
    if not missing:
        return
    steps = [level for level in _levels(launcher, arms, missing, shards) if level[0].task != "report"]
    snapshot = take_snapshot(arms, words, store, shards)
    _remove_failures([arms[n] for n in missing])

    def print_end(job: Job, status: int) -> None:
        end = "done" if status == 0 else f"signal {-status}" if status < 0 else f"exit status {status}"
        if -status in (signal.SIGKILL, signal.SIGABRT):  # of the system, and of polars
            end += f"; often for lack of memory: run fewer at a time (hydra.launcher.workers=1), or {OF_A_RUN}"
        name = ", ".join(arms[n].name for n in job.step.arms) if job.step.task == "arms" else job.step.name
        out.print(f"  {escape(name)}: {end}")

    count = launcher.count()
    out.print(f"  {count} process{'es' if count > 1 else ''} at a time; logs: {escape(str(snapshot.logs))}")
    launcher.run(snapshot, steps, print_end)
    for status in arm_statuses(snapshot):
        if status.state != "done":
            out.print(f"  [red]{escape(status.arm)}[/red] {status.state}: {escape(status.message)}")


def _span(ids: Sequence[str]) -> str:
    """Format the first and the last of several job ids.

    >>> _span(["12"]), _span(["12_0", "12_1", "12_2"])
    ('12', '12_0 to 12_2')
    """
    return ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
