"""Running one arm in any process, and the worker of a submitted sweep.

``python -m memlab.experiment.cluster.worker SWEEP STEP`` runs one step on any machine.

Exit status 1 if part of the step failed. The results of a step are files (run folders, shards, the store), so a job
may be killed at any moment and started again.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from memlab.evaluate.contrast import Contrast
from memlab.experiment.cluster import shards
from memlab.experiment.cluster.schedule import Step, parse_step
from memlab.experiment.cluster.shards import prepare, score, write
from memlab.experiment.cluster.snapshot import Snapshot
from memlab.experiment.config.instantiate import part
from memlab.experiment.harness.arm import Arm, Ranked
from memlab.experiment.harness.results import failure_file
from memlab.report.build import publish
from memlab.store import Store, store_at
from memlab.support.console import Console
from memlab.support.errors import DiskFault, Faults, MemlabError, disk_fault, error_message
from memlab.support.files import atomic_write
from memlab.support.machine import OF_A_RUN, enough_memory
from memlab.support.redaction import redact
from memlab.support.terminal import clean_logs
from memlab.support.text.display import plural


@dataclass(frozen=True)
class StepCall:
    """A step of a sweep as a callable for submitit."""

    sweep: str
    step: str

    def __call__(self) -> None:
        """Run the step; exit with status 1 if part of it failed, so that the state of the job shows it."""
        if not run_step(Snapshot(Path(self.sweep)), parse_step(self.step)):
            raise SystemExit(1)

    def checkpoint(self) -> Any:
        """Return what runs when the job is requeued: the same step, which continues from the store."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def run_step(snapshot: Snapshot, step: Step) -> bool:
    """Run one step; return whether all of it succeeded."""
    clean_logs()
    warnings.simplefilter("default")
    out = Console(soft_wrap=True, highlight=False)
    metadata = snapshot.metadata()
    store = store_at(metadata["store"])
    out.print(f"# {step.name} of {' '.join(metadata['words'])}", markup=False)
    snapshot.activate_plugins()
    arms = [snapshot.arm(n) for n in step.arms]
    shared = {"write": write, "prepare": prepare, "score": score}
    if step.task in shared:
        return _attempt(lambda: shared[step.task](arms, store, step.part, step.of), out)
    if step.task == "report":
        return _report(snapshot, arms, out)
    return all([_run(arm, store, step, out) for arm in arms])


def run_arm(arm: Arm, store: Store, out: Console, ranked: Callable[[], Ranked] | None = None) -> bool:
    """Run one arm, print how it ended, and return whether it finished.

    The traceback of an arm that fails goes to a file beside its folder, and stops no other arm. ``ranked`` returns the
    result of the arm's shards, if it has any.
    """
    start, before = time.perf_counter(), Counter(store.made)
    if arm.is_finished():
        out.print(f"  [dim]{escape(arm.name)}: finished before[/dim]")
        return True
    try:
        with enough_memory(OF_A_RUN):
            arm.run(store, ranked=ranked() if ranked else None)
        failure_file(arm.folder()).unlink(missing_ok=True)
    except Exception as raised:
        error = disk_fault(raised) or raised
        out.print(f"  [red]{escape(arm.name)} failed[/red]: {escape(error_message(error))}")
        if details := keep_traceback(failure_file(arm.folder()), error):
            out.print(f"    {escape(details)}")
        return False
    made = ", ".join(plural(n, "reply", "replies") if what == "completions" else plural(n, what.removesuffix("s"))
                     for what, n in (store.made - before).items())
    out.print(f"  [green]{escape(arm.name)}[/green]: {time.perf_counter() - start:.1f} s "
              f"({f'{made} made' if made else 'no model was asked anything new'})")
    return True


def keep_traceback(path: Path, error: Exception) -> str:
    """Write an exception's traceback, without keys, to a file and return its path.

    Where writing fails, return the traceback itself, or "" for a MemlabError, whose message says all.
    """
    trace = redact("".join(traceback.format_exception(error)))
    try:
        atomic_write(path, trace.encode(errors="replace"))
    except DiskFault:
        return "" if isinstance(error, MemlabError) else trace
    return f"details: {path}"


def _run(arm: Arm, store: Store, step: Step, out: Console) -> bool:
    """Run an arm, one shard of it, or the slots behind the merge of its shards."""
    if step.task == "arms":
        return run_arm(arm, store, out)
    if step.task == "shard":
        return _attempt(lambda: shards.run_part(arm, store, step.part, step.of), out)
    if succeeded := run_arm(arm, store, out, lambda: shards.merge_parts(arm, step.of)):
        shards.remove_parts(arm)
    return succeeded


def _attempt(action: Callable[[], object], out: Console) -> bool:
    """Call ``action``; return False and print the message if it raises MemlabError. Other errors pass."""
    try:
        with enough_memory(OF_A_RUN):
            action()
    except MemlabError as error:
        out.print(str(error), markup=False)
        return False
    return True


def _report(snapshot: Snapshot, arms: Sequence[Arm], out: Console) -> bool:
    """Publish and report the finished arms, and end the sweep's model server."""
    config, faults = snapshot.config(0), list[str]()
    track = part(config, "track", faults)
    if faults:
        raise Faults(faults)
    contrasts = [Contrast(**dict(contrast)) for contrast in config["contrasts"]]
    try:
        comparisons = publish(arms, track, contrasts)
    finally:
        if server := snapshot.metadata().get("server"):
            subprocess.run(["scancel", str(server)], check=False, timeout=60)  # noqa: S603, S607 (SLURM's own command)
    for path in comparisons:
        out.print(f"report: {path.with_name('report.html')}")
    missing = [arm.name for arm in arms if not arm.is_finished()]
    if missing:
        out.print(f"missing: {', '.join(missing)}", markup=False)
    return not missing


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the step that the command line names; return the exit status."""
    sweep, step = sys.argv[1:] if arguments is None else arguments
    return 0 if run_step(Snapshot(Path(sweep)), parse_step(step)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
