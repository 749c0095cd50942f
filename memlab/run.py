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
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf, open_dict
from rich.console import Console
from rich.markup import escape

from memlab.arm import Arm
from memlab.config import CONF, part
from memlab.errors import Faults, MemlabError
from memlab.store import Store
from memlab.sweep import Sweep, arm_of, read

_out = Console(soft_wrap=True, highlight=False)
_done: dict[str, float] = {}
_failed: dict[str, str] = {}
_stores: dict[str | None, Store] = {}


def store_at(place: str | None) -> Store:
    """Open the store once a process; None is the default place."""
    if place not in _stores:
        _stores[place] = Store(Path(place) if place else None)
    return _stores[place]


def run_arm(arm: Arm, store: Store) -> None:
    """Run one arm, note how it ended, and let the others go on if it failed."""
    start = time.perf_counter()
    if arm.finished():
        _done[arm.name] = 0.0
        _out.print(f"  [dim]{escape(arm.name)}: finished before[/dim]")
        return
    failure = arm.beside() / f"{arm.folder().name}.failed.txt"
    try:
        before = Counter(store.made)
        arm.run(store)
        _done[arm.name] = time.perf_counter() - start
        made = ", ".join(f"{n:,} {what}" for what, n in (store.made - before).items()) or "all from the store"
        _out.print(f"  [green]{escape(arm.name)}[/green]: {_done[arm.name]:.1f} s ({made})")
        failure.unlink(missing_ok=True)
    except Exception as error:
        told = str(error) if isinstance(error, MemlabError) else f"{type(error).__name__}: {error}"
        failure.parent.mkdir(parents=True, exist_ok=True)
        failure.write_text(traceback.format_exc(), encoding="utf-8")
        _failed[arm.name] = told
        _out.print(f"  [red]{escape(arm.name)} failed[/red]: {escape(told)}\n    details: {failure}")


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def job(cfg: DictConfig) -> None:
    """Run one arm, in whatever process the launcher chose."""
    with open_dict(cfg):
        cfg.hydra = HydraConfig.instance().cfg.hydra  # type: ignore[union-attr]
    run_arm(arm_of(cfg), store_at(cfg.store))


def report(sweep: Sweep) -> None:
    """Publish the finished arms, build their report, and print the comparison."""
    from memlab.report.build import build
    from memlab.report.console import print_comparison

    faults: list[str] = []
    track = part(sweep.settings, "track", faults)
    places = dict.fromkeys(arm.beside() for arm in sweep.arms)
    for place in places:
        here = [a for a in sweep.arms if a.beside() == place]
        finished = [a for a in here if a.finished()]
        if not finished:
            continue
        for arm in finished:
            for folder in sorted(place.glob("*/manifest.json")):
                if folder.parent.name.startswith(arm.folder().name.rsplit("-", 1)[0]):
                    track.publish(folder.parent)
        built = build(place, contrasts=sweep.contrasts, expected=[a.name for a in here])
        print_comparison(built.comparison, _out)
        _out.print(f"report: {built.html}")


def main(argv: list[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    if any(w in ("--help", "-h", "--cfg", "-c", "--info", "-i", "--hydra-help") for w in words):
        job()
        return 0
    flags = [w for w in words if w.startswith("-")]
    plain = [w for w in words if not w.startswith("-")]
    try:
        sweep = read(plain, multirun=any(f in ("-m", "--multirun") for f in flags))
        if sweep.settings.plan:
            from memlab.plan import print_plan

            print_plan(sweep, store_at(sweep.settings.store), _out)
            return 0
        first = sweep.arms[0]
        ready = sum(a.finished() for a in sweep.arms)
        _out.print(f"[bold]{escape(first.experiment)}[/bold] on {escape(first.dataset.name)}: "
                   f"{len(sweep.arms)} arm{'s' if len(sweep.arms) > 1 else ''}"
                   f"{f', {ready} finished before' if ready else ''}")
        _launch(sweep, plain)
        report(sweep)
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; finished work is kept: run the same line again to go on")
        return 130
    if _failed:
        _out.print(f"[red]{len(_failed)} of {len(sweep.arms)} arms failed[/red]: {escape(', '.join(_failed))}")
        return 1
    return 0


def _launch(sweep: Sweep, words: list[str]) -> None:
    """Hand the arms to Hydra's launcher; where all are finished there is nothing to launch."""
    if all(a.finished() for a in sweep.arms):
        for arm in sweep.arms:
            run_arm(arm, store_at(sweep.settings.store))
        return
    told = f"+swept=[{','.join(repr(s) for s in sweep.swept)}]"
    sys.argv = [sys.argv[0], *(["-m"] if sweep.multirun else []), *words, *([told] if sweep.swept else [])]
    job()


def plain_config(cfg: DictConfig) -> Any:
    """Give a configuration as plain values."""
    return OmegaConf.to_container(cfg, resolve=True)


if __name__ == "__main__":
    sys.exit(main())
