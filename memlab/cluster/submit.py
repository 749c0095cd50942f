"""Handing a sweep to a launcher of memlab's own, and staying with it until its last job has ended."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from memlab.cluster.local import Local
from memlab.cluster.precompute import asks_before_search, shared_groups
from memlab.cluster.schedule import AHEAD, Step, waves
from memlab.cluster.slurm import Slurm
from memlab.cluster.slurm_states import State, Unreachable
from memlab.cluster.snapshot import Frozen, Job, freeze, sweeps
from memlab.cluster.status import WORKS, job_states, looks
from memlab.harness.arm import Arm
from memlab.harness.results import failure_file
from memlab.runtime.home import store_root

POLL, PATIENCE = 10.0, 600.0
"""Seconds between two questions to SLURM, at most (a young sweep is asked after more often), and how long a controller
that does not answer is waited for."""


def submit(launcher: Slurm, arms: Sequence[Arm], words: Sequence[str], store: str | None, shards: int,
           out: Console) -> Frozen | None:
    """Freeze a sweep and submit what of it is neither finished nor under way; None where all is finished."""
    if all(arm.finished() for arm in arms):
        return None
    before = under_way(arms)
    fresh = [n for n, arm in enumerate(arms) if not arm.finished() and n not in before]
    laid = _waves(arms, _packs(launcher, arms, fresh), shards)
    frozen = frozen_of(arms, words, store, shards)
    frozen.record([job for jobs in before.values() for job in jobs])
    _begin_anew([arms[n] for n in fresh])
    try:
        jobs = launcher.submit(frozen, laid)
    except BaseException:
        shutil.rmtree(frozen.folder, ignore_errors=True)  # nothing of it runs
        raise
    for number, earlier in before.items():
        out.print(f"  [dim]{escape(arms[number].name)}: under way in job {earlier[0].id}[/dim]")
    for does in dict.fromkeys(job.step.does for job in jobs):
        ids = [job.id for job in jobs if job.step.does == does]
        out.print(f"  {does}: {len(ids)} job{'s' if len(ids) > 1 else ''}, {_span(ids)}")
    return frozen


def frozen_of(arms: Sequence[Arm], words: Sequence[str], store: str | None, shards: int) -> Frozen:
    """Freeze arms, with the places that they use as absolute paths."""
    out = arms[0].out.resolve()
    return freeze([replace(arm, out=out) for arm in arms], out, Path(store) if store else store_root(), words, shards)


def _packs(launcher: Slurm | Local, arms: Sequence[Arm], fresh: Sequence[int]) -> list[list[int]]:
    """Put the arms that are to run into jobs, by their numbers in the sweep."""
    return [[fresh[at] for at in pack] for pack in launcher.packs([arms[n] for n in fresh])]


def _waves(arms: Sequence[Arm], packs: Sequence[Sequence[int]], shards: int) -> list[list[Step]]:
    """Lay out the arms of some jobs; where arms are sharded, every part is a job of its own."""
    if shards > 1:
        packs = [[n] for pack in packs for n in pack]
    asking = [n for pack in packs for n in pack if asks_before_search(arms[n])]
    return waves(packs, len(arms), shards, shared_groups(arms, packs), asking)


def _begin_anew(arms: Sequence[Arm]) -> None:
    """Forget how arms failed before: should a job of theirs die now, its own end is to be told."""
    for arm in arms:
        with suppress(OSError):
            failure_file(arm.folder()).unlink()


def under_way(arms: Sequence[Arm]) -> dict[int, list[Job]]:
    """Find the arms that wait or run in a sweep submitted before: their numbers here, and their jobs."""
    numbers = {str(arm.folder().resolve()): n for n, arm in enumerate(arms) if not arm.finished()}
    found: dict[int, list[Job]] = {}
    for frozen in sweeps(arms[0].out.resolve()):
        mine = [(n, numbers[arm["folder"]]) for n, arm in enumerate(frozen.note()["arms"]) if arm["folder"] in numbers]
        jobs = frozen.jobs() if mine else []
        known = job_states(jobs)
        for theirs, ours in mine:
            live = [job for job in jobs if theirs in job.step.arms and job.step.does in WORKS and known[job.id].live]
            if live:
                found.setdefault(ours, [Job(job.id, Step("arms", (ours,), i, len(live))) for i, job in enumerate(live)])
    return found


def wait(frozen: Frozen, out: Console) -> None:
    """Stay until every job of a sweep has ended, telling what changes; returns whatever became of the arms."""
    try:
        _watch(frozen, out)
    except KeyboardInterrupt:
        ids = " ".join(dict.fromkeys(job.id.partition("_")[0] for job in frozen.jobs()))
        out.print(f"\nthe jobs go on without this shell: python -m memlab.status; scancel {ids} ends them")
        raise


def _watch(frozen: Frozen, out: Console) -> None:
    told: dict[str, str] = {}
    start = answered = time.monotonic()
    while True:
        pause = min(POLL, 1 + (time.monotonic() - start) / 20)
        jobs = frozen.jobs()
        try:
            known = job_states(jobs)
            answered = time.monotonic()
        except Unreachable as error:
            if time.monotonic() - answered > PATIENCE:
                raise
            _changed(told, "SLURM", f"{error.what}; waiting", out)
            time.sleep(pause)
            continue
        told.pop("SLURM", None)
        _changes(frozen, jobs, known, told, out)
        if not any(state.live for state in known.values()):
            return
        time.sleep(pause)


def _changes(frozen: Frozen, jobs: Sequence[Job], known: dict[str, State], told: dict[str, str],
             out: Console) -> None:
    for job in jobs:
        if job.step.does in (*AHEAD, "report"):
            _changed(told, job.step.name, str(known[job.id]), out)
    for look in looks(frozen, known):
        _changed(told, look.arm, look.told if look.state in ("done", "failed", "lost") else "", out, look.state)


def _changed(told: dict[str, str], what: str, how: str, out: Console, state: str = "") -> None:
    """Print what is new about an arm or a job."""
    said = f"{state}: {how}".strip(": ")
    if told.get(what) != said:
        told[what] = said
        out.print(f"  {escape(what)}: {escape(said)}")


def run_local(launcher: Local, arms: Sequence[Arm], words: Sequence[str], store: str | None, shards: int,
              out: Console) -> None:
    """Run what is missing in processes of this machine; the report is left to the caller."""
    fresh = [n for n, arm in enumerate(arms) if not arm.finished()]
    if not fresh:
        return
    steps = [wave for wave in _waves(arms, _packs(launcher, arms, fresh), shards) if wave[0].does != "report"]
    frozen = frozen_of(arms, words, store, shards)
    _begin_anew([arms[n] for n in fresh])

    def ended(job: Job, status: int) -> None:
        how = "done" if status == 0 else f"signal {-status}" if status < 0 else f"exit status {status}"
        named = ", ".join(arms[n].name for n in job.step.arms) if job.step.does == "arms" else job.step.name
        out.print(f"  {escape(named)}: {how}")

    count = launcher.count()
    out.print(f"  {count} process{'es' if count > 1 else ''} at a time; logs: {escape(str(frozen.logs))}")
    launcher.run(frozen, steps, ended)
    for look in looks(frozen):
        if look.state != "done":
            out.print(f"  [red]{escape(look.arm)}[/red] {look.state}: {escape(look.told)}")


def _span(ids: Sequence[str]) -> str:
    """Name the first and the last of several jobs.

    >>> _span(["12"]), _span(["12_0", "12_1", "12_2"])
    ('12', '12_0 to 12_2')
    """
    return ids[0] if len(ids) == 1 else f"{ids[0]} to {ids[-1]}"
