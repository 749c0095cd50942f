"""The entry point: ``python -m memlab.run [+exp=NAME] [slot=technique] [slot.setting=value]``.

One arm, or the arms of a declared experiment, then the report. Finished arms are not run again; interrupted work
continues where it stopped. Exit status: 0 done, 1 an arm failed, 2 the configuration is faulty, 130 interrupted.
"""

from __future__ import annotations

import sys

from memlab.__main__ import announce

if __name__ == "__main__":
    announce("run", sys.argv[1:])

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from rich.console import Console
from rich.markup import escape

from memlab.cluster import shards
from memlab.cluster.local import Local
from memlab.cluster.slurm import Slurm
from memlab.cluster.submit import run_local, submit, wait
from memlab.config.compose import compose
from memlab.config.instantiate import options
from memlab.config.overrides import HELP, MULTIRUN, groups
from memlab.config.reasons import lines_with_reasons
from memlab.errors import Faults, MemlabError
from memlab.harness.plan import print_plan
from memlab.harness.runner import run_arm
from memlab.harness.sweep import Sweep, read
from memlab.report.publish import publish, show
from memlab.runtime.interrupt import one_interrupt
from memlab.store import store_at

USAGE = """memlab: what makes retrieval for long-term conversational memory work

  python -m memlab.run                      one arm on embedded data, all defaults
  python -m memlab.run rank/select=gap      another technique in one slot
  python -m memlab.run rank.select.k=5      another value
  python -m memlab.run -m rank.select.k=5,10,20            a sweep: one arm per value
  python -m memlab.run +exp=adaptive_k      a declared experiment: arms, contrasts, report
  python -m memlab.run ... plan=true        what would run, what is cached, what it costs
  python -m memlab.run ... hydra/launcher=local|slurm      in processes, or as jobs

Exit status: 0 done, 1 an arm failed, 2 the configuration is faulty, 130 interrupted.

== Slots, and the techniques for each (slot=technique) ==

{slots}

== Settings of what is chosen by these words (slot.setting=value) ==

{settings}"""

_out = Console(soft_wrap=True, highlight=False)


def help_page(words: Sequence[str], multirun: bool = False) -> str:
    """Describe the command, all slots, and the settings of what these words choose; raise Faults if they are bad."""
    configs, faults = compose(words, multirun)
    if configs is None or faults:
        raise Faults(faults)
    slots = (f"{slot}: {', '.join(options(slot))}" for slot in sorted(groups()) if not slot.startswith("hydra"))
    settings: Any = OmegaConf.to_container(configs.base)
    del settings["hydra"]
    return USAGE.format(slots="\n".join(slots), settings="\n".join(lines_with_reasons(settings)))


def report(sweep: Sweep, before: Sequence[Path] = ()) -> None:
    """Publish the finished arms and their twins and build the report, unless a job did; print the comparison."""
    for built in publish(sweep.arms, sweep.track, sweep.contrasts, before):
        show(built, sweep.arms, _out)


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    with one_interrupt():
        return _main(argv)


def _main(argv: list[str] | None) -> int:
    words = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    plain = [w for w in words if w not in (*MULTIRUN, *HELP)]
    multirun = any(w in MULTIRUN for w in words)
    try:
        if any(w in HELP for w in words):
            print(help_page(plain, multirun))
            return 0
        sweep = read(plain, multirun)
        if sweep.settings.plan:
            print_plan(sweep, store_at(sweep.settings.store), _out)
            return 0
        return _run(sweep, plain)
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; finished work is kept: run the same command again to continue")
        return 130


def _run(sweep: Sweep, words: list[str]) -> int:
    """Run the arms that are not finished, report all that are, and return the exit status."""
    first, several = sweep.arms[0], len(sweep.arms) > 1
    ready = sum(a.finished() for a in sweep.arms)
    _out.print(f"[bold]{escape(first.experiment)}[/bold] on {escape(first.dataset.name)}: "
               f"{len(sweep.arms)} arm{'s' if several else ''}{f', {ready} finished before' if ready else ''}")
    for why in dict.fromkeys(sweep.left_out.values()):
        names = ", ".join(name for name, reason in sweep.left_out.items() if reason == why)
        _out.print(f"  [dim]left out: {escape(names)} ({escape(why)})[/dim]")
    settings = sweep.settings
    arguments = (sweep.arms, words, settings.store, settings.shards, _out)
    built: list[Path] = []
    if isinstance(sweep.launcher, Slurm):
        if snapshot := submit(sweep.launcher, *arguments):
            wait(snapshot, _out)
            built = snapshot.current_reports()
    elif isinstance(sweep.launcher, Local):
        run_local(sweep.launcher, *arguments)
    else:
        store = store_at(settings.store)
        for arm in sweep.arms:
            parts = partial(shards.run_all, arm, store, settings.shards) if settings.shards > 1 else None
            if run_arm(arm, store, _out, parts):
                shards.remove_parts(arm)
    report(sweep, built)
    failed = [a.name for a in sweep.arms if not a.finished()]  # read from the run folders, since jobs run arms too
    if failed:
        _out.print(f"[red]{len(failed)} of {len(sweep.arms)} arms failed[/red]: {escape(', '.join(failed))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
