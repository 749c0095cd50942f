"""Submission of a command line of ``memlab run``: its plan, or its arms here, in processes or as jobs."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from rich.markup import escape

from memlab.experiment.cluster import shards
from memlab.experiment.cluster.local import Local
from memlab.experiment.cluster.schedule import Step, levels
from memlab.experiment.cluster.shards import asks_before_search, shared_groups
from memlab.experiment.cluster.slurm import Slurm, Unreachable
from memlab.experiment.cluster.snapshot import Job, Snapshot, sweeps, take_snapshot
from memlab.experiment.cluster.status import ARM_TASKS, arm_statuses, count_states, job_states
from memlab.experiment.cluster.worker import run_arm
from memlab.experiment.harness.arm import Arm, load
from memlab.experiment.harness.plan import Cost, in_all, print_left_out, print_plan, print_whole, remaining_costs
from memlab.experiment.harness.results import failure_file
from memlab.experiment.harness.sweep import Sweep, read
from memlab.pipeline.stage import spec_digest
from memlab.report.build import publish, show
from memlab.store import store_at
from memlab.support.console import Console
from memlab.support.errors import MemlabError
from memlab.support.machine import OF_A_RUN, enough_memory
from memlab.support.progress import Pace, clock
from memlab.support.text.display import plural

WORTH_SAYING = 10.0
"""Seconds left from which they are printed."""

POLL = 10.0
"""Maximum seconds between two requests to SLURM; fewer in the first minutes of a sweep."""


def submit(launcher: Slurm, arms: Sequence[Arm], arguments: Sequence[str], store: str | None, shards: int,
           out: Console) -> Snapshot | None:
    """Submit the arms that are neither finished nor under way in an earlier sweep; None if all are finished."""
    if all(arm.is_finished() for arm in arms):
        return None
    earlier = jobs_under_way(arms)
    missing = [n for n, arm in enumerate(arms) if not arm.is_finished() and n not in earlier]
    steps = _levels(launcher, arms, missing, shards)
    snapshot = take_snapshot(arms, arguments, store, shards)
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
        out.print(f"  {task}: {plural(len(ids), 'job')}, {ids[0]}{f' to {ids[-1]}' * (len(ids) > 1)}")
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
    numbers = {str(arm.folder().resolve()): n for n, arm in enumerate(arms) if not arm.is_finished()}
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
    """Wait until every job of a sweep has ended, and print how many arms are in each state when that changes."""
    printed, start = "", time.monotonic()
    try:
        while True:
            try:
                states = job_states(snapshot.jobs())
                line = count_states(arm_statuses(snapshot, states))
            except Unreachable as error:
                states, line = None, f"{error.what}; waiting"
            if line != printed:
                out.print(f"  {escape(line)}")
                printed = line
            if states is not None and not any(state.live for state in states.values()):
                return
            time.sleep(min(POLL, 1 + (time.monotonic() - start) / 20))
    except KeyboardInterrupt:
        ids = " ".join(dict.fromkeys(job.id.partition("_")[0] for job in snapshot.jobs()))
        out.print(f"\nthe jobs continue: memlab status shows them, scancel {ids} ends them")
        raise


def print_failures(snapshot: Snapshot, out: Console) -> None:
    """Print why each arm of a sweep that is not done has no result."""
    for status in arm_statuses(snapshot):
        if status.state != "done":
            out.print(f"  [red]{escape(status.arm)}[/red] {status.state}: {escape(status.message)}")


def run_local(launcher: Local, arms: Sequence[Arm], arguments: Sequence[str], store: str | None, shards: int,
              out: Console) -> None:
    """Run the missing arms in processes of this machine; the report is left to the caller."""
    missing = [n for n, arm in enumerate(arms) if not arm.is_finished()]
    if not missing:
        return
    steps = [level for level in _levels(launcher, arms, missing, shards) if level[0].task != "report"]
    snapshot = take_snapshot(arms, arguments, store, shards)
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
    print_failures(snapshot, out)


@enough_memory(OF_A_RUN)
def launch(arguments: list[str], multirun: bool, out: Console, waits: bool = True) -> int:
    """Plan or run what the arguments configure; return the exit status. Raises Faults for a faulty configuration.

    Where it does not wait, jobs of SLURM are submitted, and nothing else is done.
    """
    sweep = read(arguments, multirun)
    if sweep.settings.plan:
        print_plan(sweep, store_at(sweep.settings.store), out)
        return 0
    if not waits and not isinstance(sweep.launcher, Slurm):
        raise MemlabError("this launcher runs the arms in the calling shell", where="hydra/launcher",
                          fix="memlab run with the same arguments, or a SLURM profile")
    return _run(sweep, arguments, out, waits)


def _run(sweep: Sweep, arguments: list[str], out: Console, waits: bool) -> int:
    """Run the arms that are not finished, report all that are, and return the exit status."""
    first, several = sweep.arms[0], len(sweep.arms) > 1
    ready, twins = sum(a.is_finished() for a in sweep.arms), sum(a.adaptive() for a in sweep.arms)
    out.print(f"[bold]{escape(first.experiment)}[/bold] on {escape(first.dataset.name)}: "
              f"{plural(len(sweep.arms), 'arm')}"
              f"{f', {ready} finished before' if ready else ''}"
              f"{f', {twins} with a twin of constant K at the same tokens' if twins else ''}"
              f"{'; an arm is one configuration' * several}")
    print_left_out(sweep, out)
    settings = sweep.settings
    if ready < len(sweep.arms) and sweep.launcher is None:
        _check_data(sweep)
        print_whole(sweep.arms, out)
    inputs = (sweep.arms, arguments, settings.store, settings.shards, out)
    if isinstance(sweep.launcher, Slurm):
        snapshot = submit(sweep.launcher, *inputs)
        if not waits:
            out.print(f"status: memlab status --out {escape(snapshot.metadata()['out'])}" if snapshot
                      else "nothing to submit: every arm is finished")
            return 0
        if snapshot:
            wait(snapshot, out)
            print_failures(snapshot, out)
    elif isinstance(sweep.launcher, Local):
        run_local(sweep.launcher, *inputs)
    else:
        _run_here(sweep, out)
    _report(sweep, out)
    failed = [a.name for a in sweep.arms if not a.is_finished()]  # read from the run folders, since jobs run arms too
    if failed:
        out.print(f"[red]{len(failed)} of {len(sweep.arms)} arms failed[/red]: {escape(', '.join(failed))}")
    return 1 if failed else 0


def _run_here(sweep: Sweep, out: Console) -> None:
    """Run the arms in this process; say first what all of them have to make."""
    settings, store = sweep.settings, store_at(sweep.settings.store)
    costs: dict[tuple[str, str], Cost] = {}
    if len(sweep.arms) > 1:
        with suppress(Exception):  # of an arm that fails: it says why when it runs, and stops no other
            costs = {key: one or Cost() for key, one in remaining_costs(sweep.arms, store).items()}
    if words := in_all(costs.values()):
        out.print(f"  [dim]{words}[/dim]")
    pace = Pace(len(costs), sum(one.weight() for one in costs.values()))
    for number, arm in enumerate(sweep.arms):
        if arm.dataset.name != sweep.arms[number - 1].dataset.name:
            out.print(f"on {escape(arm.dataset.name)}:")
        parts = partial(shards.run_all, arm, store, settings.shards) if settings.shards > 1 else None
        if run_arm(arm, store, out, parts):
            shards.remove_parts(arm)
        if one := costs.get((arm.name, arm.dataset.name)):
            pace.step(1, one.weight())
            if (left := pace.seconds_left()) and left >= WORTH_SAYING:
                out.print(f"    [dim]arm {number + 1} of {len(sweep.arms)} is done, at most about {clock(left)} "
                          "left[/dim]")


def _check_data(sweep: Sweep) -> None:
    """Read the data once before any arm; raise MemlabError if they are faulty, or have no question."""
    dataset = sweep.arms[0].dataset
    if len({spec_digest(arm.dataset.identity()) for arm in sweep.arms}) == 1 and not load(dataset)["questions"].height:
        raise MemlabError("there are no questions, so nothing can be measured", where=dataset.name,
                          fix="write questions.jsonl (memlab questions FOLDER proposes some), or use memlab ask, which "
                              "needs none")


def _report(sweep: Sweep, out: Console) -> None:
    """Publish the finished arms and their twins, build the report unless it is up to date, and print it."""
    reports = publish(sweep.arms, sweep.track, sweep.contrasts)
    out.print(f"[dim]{escape(sweep.track.describe())}[/dim]")
    for built in reports:
        show(built, sweep.arms, out)
