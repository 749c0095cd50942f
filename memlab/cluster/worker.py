"""What a job does: ``python -m memlab.cluster.worker SWEEP STEP``, one step of a submitted sweep, on whatever machine.

Exit status 1 where something of the step failed. The step leaves files (run folders, shards, what the store holds);
nothing else of it is read, so a job may die at any moment and be started again.
"""

from __future__ import annotations

import logging
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from memlab.cluster import shards
from memlab.cluster.precompute import prepare, score, write
from memlab.cluster.schedule import Step, step_of
from memlab.cluster.snapshot import Frozen
from memlab.config.instantiate import part
from memlab.errors import Faults, MemlabError
from memlab.evaluate.contrast import Contrast
from memlab.harness.arm import Arm
from memlab.harness.runner import error_message, run_arm
from memlab.report.publish import publish
from memlab.store import Store, store_at


@dataclass(frozen=True)
class Work:
    """A step of a sweep as something that can be called, in the form that submitit starts and starts again."""

    sweep: str
    step: str

    def __call__(self) -> None:
        """Do the step; raise where something of it failed, so that the job's own state says so."""
        if not do(Frozen(Path(self.sweep)), step_of(self.step)):
            raise SystemExit(1)

    def checkpoint(self) -> Any:
        """Return what is to run when the job is started again: the same, since the store holds what was done."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def do(frozen: Frozen, step: Step) -> bool:
    """Do one step; tell whether all of it went well."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    warnings.simplefilter("default")
    out = Console(soft_wrap=True, highlight=False)
    note = frozen.note()
    store = store_at(note["store"])
    out.print(f"# {step.name} of {' '.join(note['words'])}", markup=False)
    if step.does == "report":
        return _report(frozen, [frozen.arm(n) for n in step.arms], out)
    arms = [frozen.arm(n) for n in step.arms]
    ahead = {"write": write, "prepare": prepare, "score": score}
    if step.does in ahead:
        return _told(lambda: ahead[step.does](arms, store, step.part, step.of), out)
    if step.does == "shard":
        return all([_shard(arm, store, step, out) for arm in arms])
    return all([_run(arm, store, step, out) for arm in arms])


def _run(arm: Arm, store: Store, step: Step, out: Console) -> bool:
    """Run an arm whole, or, where its shards are there, what comes behind their merge."""
    if step.does == "arms":
        return run_arm(arm, store, out)
    if ended := run_arm(arm, store, out, lambda: shards.merged(arm, step.of)):
        shards.forget(arm)
    return ended


def _shard(arm: Arm, store: Store, step: Step, out: Console) -> bool:
    return _told(lambda: shards.run_part(arm, store, step.part, step.of), out)


def _told(work: Any, out: Console) -> bool:
    """Do something; where it fails, print why, with the traceback if that is not memlab's own word."""
    try:
        work()
    except MemlabError as error:
        out.print(error_message(error), markup=False)
        return False
    return True


def _report(frozen: Frozen, arms: Sequence[Arm], out: Console) -> bool:
    """Publish and report what is finished, wherever it ran, and end the model server that was started for it."""
    config, wrong = frozen.config(0), list[str]()
    track = part(config, "track", wrong)
    if wrong:
        raise Faults(wrong)
    contrasts = [Contrast(**dict(one)) for one in config["contrasts"]]
    try:
        built = publish(arms, track, contrasts)
    finally:
        if server := frozen.note().get("server"):
            subprocess.run(["scancel", str(server)], check=False, timeout=60)  # noqa: S603, S607 (SLURM's own command)
    for path in built:
        out.print(f"report: {path.with_name('report.html')}")
    missing = [arm.name for arm in arms if not arm.finished()]
    if missing:
        out.print(f"missing: {', '.join(missing)}", markup=False)
    else:
        frozen.note_report(built)
    return not missing


def main(words: Sequence[str] | None = None) -> int:
    """Do the step that a command line names."""
    sweep, step = sys.argv[1:] if words is None else words
    return 0 if do(Frozen(Path(sweep)), step_of(step)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
