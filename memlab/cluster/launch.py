"""A command line of ``memlab run``: its plan, or its arms here, in processes or as jobs, and then their report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from rich.markup import escape

from memlab.cluster import shards
from memlab.cluster.local import Local
from memlab.cluster.slurm import Slurm
from memlab.cluster.submit import run_local, submit, wait
from memlab.errors import Faults, MemlabError
from memlab.harness.arm import load
from memlab.harness.gpu_print import check_cards
from memlab.harness.plan import Cost, cost, print_plan
from memlab.harness.runner import run_arm
from memlab.harness.sweep import Sweep, read
from memlab.report.inputs import reported_runs
from memlab.report.publish import publish, show
from memlab.report.sizes import table_file
from memlab.runtime.console import Console
from memlab.runtime.foreign import read_json
from memlab.runtime.machine import OF_A_RUN, enough_memory
from memlab.stage import spec_digest
from memlab.store import store_at


@enough_memory(OF_A_RUN)
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
    ready, twins = sum(a.finished() for a in sweep.arms), sum(a.adaptive() for a in sweep.arms)
    out.print(f"[bold]{escape(first.experiment)}[/bold] on {escape(first.dataset.name)}: "
              f"{len(sweep.arms)} arm{'s' if several else ''}"
              f"{f', {ready} finished before' if ready else ''}"
              f"{f', {twins} with a twin of constant K' if twins else ''}")
    for why in dict.fromkeys(sweep.left_out.values()):
        names = ", ".join(name for name, reason in sweep.left_out.items() if reason == why)
        out.print(f"  [dim]left out: {escape(names)} ({escape(why)})[/dim]")
    settings = sweep.settings
    if ready < len(sweep.arms):
        _check_cards(sweep)
        if sweep.launcher is None:
            _check_data(sweep)
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
        for number, arm in enumerate(sweep.arms):
            if arm.dataset.name != sweep.arms[number - 1].dataset.name:
                out.print(f"on {escape(arm.dataset.name)}:")
            parts = partial(shards.run_all, arm, store, settings.shards) if settings.shards > 1 else None
            if run_arm(arm, store, out, parts):
                shards.remove_parts(arm)
    _report(sweep, out, built)
    failed = [a.name for a in sweep.arms if not a.finished()]  # read from the run folders, since jobs run arms too
    if failed:
        out.print(f"[red]{len(failed)} of {len(sweep.arms)} arms failed[/red]: {escape(', '.join(failed))}")
    return 1 if failed else 0


def _check_data(sweep: Sweep) -> None:
    """Read the data once before any arm; raise MemlabError if they are faulty, or have no question."""
    dataset = sweep.arms[0].dataset
    if len({spec_digest(arm.dataset.identity()) for arm in sweep.arms}) == 1 and not load(dataset)["questions"].height:
        raise MemlabError("there are no questions, so nothing can be measured", where=dataset.name,
                          fix="write questions.jsonl (memlab questions FOLDER proposes some), or use memlab ask, which "
                              "needs none")


def _check_cards(sweep: Sweep) -> None:
    """Raise Faults if what the arms still have to make needs models that cannot fit the cards."""
    todo = [arm for arm in sweep.arms if not arm.finished()]
    try:
        check_cards(sweep.settings, todo)
    except Faults:
        store = store_at(sweep.settings.store)
        if any(cost(arm, store, set()) != Cost() for arm in todo):  # else no model is loaded
            raise


def _report(sweep: Sweep, out: Console, before: Sequence[Path] = ()) -> None:
    """Publish the finished arms and their twins and build the report, unless a job did; print the comparison."""
    earlier = {arm.arms_folder(): reported_runs(arm.arms_folder()) for arm in sweep.arms}
    for built in publish(sweep.arms, sweep.track, sweep.contrasts, before):
        show(built, sweep.arms, out)
        if command := _replaced(built, earlier.get(built.parent, {})):
            out.print(f"  [dim]it replaces the report of {escape(command)}[/dim]")
    for file in dict.fromkeys(table_file(arm.arms_folder()) for arm in sweep.arms):
        if file.is_file():
            out.print(f"sizes: {escape(str(file))}")


def _replaced(report: Path, earlier: Mapping[str, str]) -> str:
    """Return the command of the earlier report of the same arms with other settings; empty if there was none."""
    now = reported_runs(report.parent)
    other = [folder for name, folder in earlier.items() if name in now and now[name] != folder]
    with suppress(OSError, ValueError):
        return str(read_json(report.parent / other[0] / "manifest.json").get("command") or "") if other else ""
    return ""
