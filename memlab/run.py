"""The entry point: ``python -m memlab.run [+exp=NAME] [slot=technique] [slot.setting=value]``.

One arm, or the arms of a declared experiment, then the report. Finished arms return at once; interrupted work goes
on where it stopped. Exit status: 0 done, 1 an arm failed, 2 the configuration is faulty, 130 interrupted.
"""

from __future__ import annotations

import logging
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, open_dict
from rich.console import Console
from rich.markup import escape

from memlab.arm import Arm
from memlab.config import CONF
from memlab.errors import Faults, MemlabError
from memlab.manifest import read_json
from memlab.overrides import HELP
from memlab.plan import print_plan, worded
from memlab.store import Store, store_at
from memlab.sweep import Sweep, arm_of, read

MULTIRUN = ("-m", "--multirun")

_out = Console(soft_wrap=True, highlight=False)


def run_arm(arm: Arm, store: Store) -> None:
    """Run one arm and tell how it ended; one that fails is told in a file beside its folder, and stops no other."""
    start, before = time.perf_counter(), Counter(store.made)
    if arm.finished():
        _out.print(f"  [dim]{escape(arm.name)}: finished before[/dim]")
        return
    failure = arm.beside() / f"{arm.folder().name}.failed.txt"
    try:
        arm.run(store)
        failure.unlink(missing_ok=True)
    except Exception as error:
        told = str(error) if isinstance(error, MemlabError) else f"{type(error).__name__}: {error}"
        _out.print(f"  [red]{escape(arm.name)} failed[/red]: {escape(told)}\n    {escape(_details(failure))}")
        return
    made = ", ".join(f"{n:,} {what}" for what, n in worded(store.made - before).items())
    _out.print(f"  [green]{escape(arm.name)}[/green]: {time.perf_counter() - start:.1f} s "
               f"({f'{made} made' if made else 'no model was asked anything new'})")


def _details(failure: Path) -> str:
    """Keep the traceback of the exception at hand; where the disk is what failed, return it instead."""
    trace = traceback.format_exc()
    try:
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(trace, encoding="utf-8")
    except OSError:
        return trace
    return f"details: {failure}"


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def job(cfg: DictConfig) -> None:
    """Run one arm, in whatever process the launcher chose."""
    with open_dict(cfg):
        cfg.hydra = HydraConfig.instance().cfg.hydra  # type: ignore[union-attr]
    run_arm(arm_of(cfg), store_at(cfg.store))


def report(sweep: Sweep) -> None:
    """Publish the finished arms and their twins, build the report, and print the comparison."""
    from memlab.report.build import build
    from memlab.report.console import print_arm, print_comparison

    for place in dict.fromkeys(arm.beside() for arm in sweep.arms):
        here = [a for a in sweep.arms if a.beside() == place]
        finished = [a.folder() for a in here if a.finished()]
        if not finished:
            continue
        for folder in finished:
            sweep.track.publish(folder)
            matched = read_json(folder / "manifest.json").get("twin")
            if matched:
                sweep.track.publish(place / matched)
        built = build(place, contrasts=sweep.contrasts, expected=[a.name for a in here])
        alone = here[0].name if len(here) == 1 else None
        if alone in built.comparison["arms"]:
            print_arm(built.comparison, str(alone), _out)
        else:
            print_comparison(built.comparison, _out)
        _out.print(f"report: {built.html}")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if any(w in HELP for w in words):
        _hydra_job(words)
        return 0
    plain = [w for w in words if w not in MULTIRUN]
    try:
        sweep = read(plain, multirun=plain != words)
        if sweep.settings.plan:
            print_plan(sweep, store_at(sweep.settings.store), _out)
            return 0
        return _run(sweep, plain)
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; finished work is kept: run the same line again to go on")
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
    if sweep.launched():
        if ready < len(sweep.arms):  # else there is nothing to launch
            swept = [f"+swept=[{','.join(repr(s) for s in sweep.swept)}]"] if sweep.swept else []
            _hydra_job([*(["-m"] if sweep.multirun else []), *words, *swept])
    else:  # the arms are composed and constructed already; Hydra's basic launcher would compose each again, twice
        for arm in sweep.arms:
            run_arm(arm, store_at(sweep.settings.store))
    report(sweep)
    failed = [a.name for a in sweep.arms if not a.finished()]  # told by the folders, wherever the arms ran
    if failed:
        _out.print(f"[red]{len(failed)} of {len(sweep.arms)} arms failed[/red]: {escape(', '.join(failed))}")
    return 1 if failed else 0


def _hydra_job(words: list[str]) -> None:
    """Hand a command line to Hydra's launcher, which reads it from ``sys.argv``."""
    before = sys.argv
    sys.argv = [before[0], *words]
    try:
        job()
    finally:
        sys.argv = before


if __name__ == "__main__":
    sys.exit(main())
