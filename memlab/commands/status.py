"""Status of submitted sweeps, one row per arm: ``memlab status [EXP] [--out runs]`` (or ``out=runs``).

Exit status 0 if all arms are done, 3 if some wait or run, 1 if some failed or are lost.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Column, Table
from rich.text import Text

from memlab.experiment.cluster.slurm import JobState
from memlab.experiment.cluster.snapshot import Snapshot, sweeps
from memlab.experiment.cluster.status import ArmStatus, arm_statuses, count_states, job_states
from memlab.support.console import Console
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.terminal import as_flags, print
from memlab.support.text.display import plural

COLOURS = {"done": "green", "running": "cyan", "queued": "yellow", "failed": "red", "lost": "red"}


def main(argv: Sequence[str] | None = None) -> int:
    """Print the status of the newest sweep of each experiment."""
    parser = Parser(prog="memlab status", description=__doc__)
    parser.add_argument("exp", nargs="?", help="name of an experiment; all of them unless given")
    parser.add_argument("--out", type=path_argument, default=Path("runs"),
                        help="root of the run folders (default runs)")
    words = sys.argv[1:] if argv is None else argv
    args = parser.parse_args(as_flags(words, {"out": "--out"}))
    try:
        snapshots = newest(args.out, args.exp)
        if not snapshots:
            return _print_unsubmitted(args.out)
        return _print(snapshots, Console(highlight=False))
    except MemlabError as error:
        print(f"memlab: {error}", file=sys.stderr)
        return 1


def newest(out: Path, exp: str | None) -> list[Snapshot]:
    """Return the newest sweep of each experiment and data set below a root of runs, or of one experiment.

    The list is empty if arms are finished there and none was submitted. Raises MemlabError if there are none at all.
    """
    by_data: dict[tuple[str, str], Snapshot] = {}
    for snapshot in sweeps(out):
        arm = snapshot.metadata()["arms"][0]
        by_data.setdefault((arm["experiment"], arm["data"]), snapshot)
    snapshots = [snapshot for (name, _), snapshot in by_data.items() if exp in (None, name)]
    if not snapshots:
        names = {name for name, _ in by_data}
        if exp is None and any(out.glob("*/*/*/manifest.json")):
            return []
        fix = did_you_mean(exp, names) if exp and names else "give --out DIR as the sweep's out=DIR"
        raise MemlabError(f"no sweep{f' of {exp}' if exp else ''} was submitted with runs below {out}", fix=fix)
    return snapshots


def _print_unsubmitted(out: Path) -> int:
    """Print the number of finished arms in each folder if none of them was submitted."""
    for folder, arms in sorted(Counter(path.parents[1] for path in out.glob("*/*/*/manifest.json")).items()):
        print(f"{plural(arms, 'arm')} finished in {folder}")
    print("no sweep was submitted: they ran without a launcher")
    return 0


def report(snapshot: Snapshot, states: Mapping[str, JobState]) -> str:
    """Describe where the sweep's report is, or the state of its job; ``states`` are those of the sweep's jobs."""
    jobs = [job for job in snapshot.jobs() if job.step.task == "report"]
    if jobs and states[jobs[-1].id].live:
        return f"report job: {states[jobs[-1].id]}"
    path = Path(snapshot.metadata()["arms"][0]["folder"]).parent / "report.html"
    return f"report: {path}" if path.is_file() else "no report"


def _print(snapshots: Sequence[Snapshot], out: Console) -> int:
    printed: list[ArmStatus] = []
    for snapshot in snapshots:
        metadata, states = snapshot.metadata(), job_states(snapshot.jobs())
        arms = arm_statuses(snapshot, states)
        table = Table(Column("arm", overflow="fold"), "state", Column("job", overflow="fold"),
                      Column("message", overflow="fold"), show_edge=False)
        for arm in arms:
            table.add_row(Text(arm.arm), Text(arm.state, COLOURS[arm.state]), Text(arm.job), Text(arm.message))
        out.print(Text(f"{' '.join(metadata['words'])}   submitted {metadata['submitted']}", "bold"))
        out.print(table)
        out.print(Text(f"{count_states(arms)}; {report(snapshot, states)}; logs: {snapshot.logs}\n"))
        printed += arms
    if any(arm.live for arm in printed):
        return 3
    return 0 if all(arm.state == "done" for arm in printed) else 1


if __name__ == "__main__":
    raise SystemExit(main())
