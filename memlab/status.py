"""How a submitted sweep stands: ``python -m memlab.status [EXP] [--out runs]`` (or ``out=runs``), one row an arm.

Exit status 0 where everything is done, 3 while something waits or runs, 1 where something failed or is lost.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from memlab.cluster.slurm_states import State
from memlab.cluster.snapshot import Frozen, sweeps
from memlab.cluster.status import Look, job_states, looks
from memlab.errors import MemlabError, did_you_mean

COLOURS = {"done": "green", "running": "cyan", "queued": "yellow", "failed": "red", "lost": "red"}


def main(argv: Sequence[str] | None = None) -> int:
    """Print how the newest sweep of every experiment stands."""
    parser = argparse.ArgumentParser(prog="python -m memlab.status", description=__doc__)
    parser.add_argument("exp", nargs="?", help="an experiment's name; all of them unless given")
    parser.add_argument("--out", type=Path, default=Path("runs"), help="root of the run folders (default runs)")
    words = sys.argv[1:] if argv is None else argv
    given = parser.parse_args([f"--{word}" if word.startswith("out=") else word for word in words])
    try:
        some = newest(given.out, given.exp)
        if not some:
            return _print_unsubmitted(given.out)
        return _print(some, Console(highlight=False))
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 1


def newest(out: Path, exp: str | None) -> list[Frozen]:
    """Find the newest sweep of every experiment and data set below a root of runs, or of one experiment.

    None where arms are finished there, and none was ever submitted. Raises MemlabError where there is nothing to tell.
    """
    found: dict[tuple[str, str], Frozen] = {}
    for frozen in sweeps(out):
        arm = frozen.note()["arms"][0]
        found.setdefault((arm["experiment"], arm["data"]), frozen)
    some = [frozen for (name, _), frozen in found.items() if exp in (None, name)]
    if not some:
        known = {name for name, _ in found}
        if exp is None and any(out.glob("*/*/*/manifest.json")):
            return []
        what = f"no sweep{f' of {exp}' if exp else ''} was submitted with runs below {out}"
        fix = did_you_mean(exp, known) if exp and known else "give --out DIR as the sweep's out=DIR"
        raise MemlabError(what, fix=fix)
    return some


def _print_unsubmitted(out: Path) -> int:
    """Tell what is finished where nothing was submitted."""
    for place, arms in sorted(Counter(path.parents[1] for path in out.glob("*/*/*/manifest.json")).items()):
        print(f"{arms} arm{'s' if arms > 1 else ''} finished in {place}")
    print("no sweep was submitted: they ran without a launcher")
    return 0


def report(frozen: Frozen, known: Mapping[str, State]) -> str:
    """Say where the sweep's report lies, or how the job stands that is to make it; ``known`` are its jobs' states."""
    jobs = [job for job in frozen.jobs() if job.step.does == "report"]
    state = known[jobs[-1].id] if jobs else None
    place = Path(frozen.note()["arms"][0]["folder"]).parent / "report.html"
    if state is not None and state.live:
        return f"its report: {state}"
    return f"report: {place}" if place.is_file() else "no report"


def _print(some: Sequence[Frozen], out: Console) -> int:
    seen: list[Look] = []
    for frozen in some:
        note, known = frozen.note(), job_states(frozen.jobs())
        arms = looks(frozen, known)
        table = Table(Column("arm", overflow="fold"), "state", Column("job", overflow="fold"),
                      Column("what there is to say", overflow="fold"), show_edge=False)
        for look in arms:
            table.add_row(Text(look.arm), Text(look.state, COLOURS[look.state]), Text(look.job), Text(look.told))
        out.print(Text(f"{' '.join(note['words'])}   submitted {note['submitted']}", "bold"))
        out.print(table)
        counts = [f"{sum(look.state == state for look in arms)} {state}" for state in COLOURS
                  if any(look.state == state for look in arms)]
        out.print(Text(f"{', '.join(counts)}; {report(frozen, known)}; logs: {frozen.logs}\n"))
        seen += arms
    if any(look.live for look in seen):
        return 3
    return 0 if all(look.state == "done" for look in seen) else 1


if __name__ == "__main__":
    raise SystemExit(main())
