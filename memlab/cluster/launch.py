"""A command line of ``memlab run``: its plan, or its arms here, in processes or as jobs, and then their report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from memlab.cluster import shards
from memlab.cluster.local import Local
from memlab.cluster.slurm import Slurm
from memlab.cluster.submit import run_local, submit, wait
from memlab.harness.plan import print_plan
from memlab.harness.runner import run_arm
from memlab.harness.sweep import Sweep, read
from memlab.report.publish import publish, show
from memlab.store import store_at


def launch(words: list[str], multirun: bool, out: Console) -> int:
    """Plan or run what the words configure; return the exit status. Raises Faults for a faulty configuration."""
    sweep = read(words, multirun)
    if sweep.settings.plan:
        print_plan(sweep, store_at(sweep.settings.store), out)
        return 0
    return _run(sweep, words, out)


def _run(sweep: Sweep, words: list[str], out: Console) -> int:
    """Run the arms that are not finished, report all that are, and return the exit status."""
    first, several = sweep.arms[0], len(sweep.arms) > 1
    ready = sum(a.finished() for a in sweep.arms)
    out.print(f"[bold]{escape(first.experiment)}[/bold] on {escape(first.dataset.name)}: "
              f"{len(sweep.arms)} arm{'s' if several else ''}{f', {ready} finished before' if ready else ''}")
    for why in dict.fromkeys(sweep.left_out.values()):
        names = ", ".join(name for name, reason in sweep.left_out.items() if reason == why)
        out.print(f"  [dim]left out: {escape(names)} ({escape(why)})[/dim]")
    settings = sweep.settings
    arguments = (sweep.arms, words, settings.store, settings.shards, out)
    built: list[Path] = []
    if isinstance(sweep.launcher, Slurm):
        if snapshot := submit(sweep.launcher, *arguments):
            wait(snapshot, out)
            built = snapshot.current_reports()
    elif isinstance(sweep.launcher, Local):
        run_local(sweep.launcher, *arguments)
    else:
        store = store_at(settings.store)
        for arm in sweep.arms:
            parts = partial(shards.run_all, arm, store, settings.shards) if settings.shards > 1 else None
            if run_arm(arm, store, out, parts):
                shards.remove_parts(arm)
    _report(sweep, out, built)
    failed = [a.name for a in sweep.arms if not a.finished()]  # read from the run folders, since jobs run arms too
    if failed:
        out.print(f"[red]{len(failed)} of {len(sweep.arms)} arms failed[/red]: {escape(', '.join(failed))}")
    return 1 if failed else 0


def _report(sweep: Sweep, out: Console, before: Sequence[Path] = ()) -> None:
    """Publish the finished arms and their twins and build the report, unless a job did; print the comparison."""
    for built in publish(sweep.arms, sweep.track, sweep.contrasts, before):
        show(built, sweep.arms, out)
