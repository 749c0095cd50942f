"""Reports from finished runs: ``memlab report RUNS``, RUNS a data folder or one above several.

``--wandb entity/project`` also sends those compared arms to W&B that are not there yet, and publishes each report
there as a W&B Report; the local report is complete without an account. ``--csv`` and ``--latex`` write the table of
arms beside each report, as ``report.csv`` with numbers as numbers, and as ``report.tex`` with intervals.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from memlab.report.build import ReportFiles, build
from memlab.report.console import print_report
from memlab.report.export import csv, latex
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write
from memlab.support.help_text import Parser
from memlab.support.machine import enough_memory
from memlab.support.paths import no_runs, path_argument
from memlab.support.terminal import print


def main(argv: Sequence[str] | None = None) -> int:
    """Build one report for every folder with finished arms; exit status 1 if there is none or one fails."""
    parser = Parser(prog="memlab report", description=__doc__)
    parser.add_argument("runs", type=path_argument, help="runs/<experiment>/<data>, or a folder above")
    parser.add_argument("--seed", type=int, default=0, help="seed of the resamples behind the intervals (default 0)")
    parser.add_argument("--csv", action="store_true", help="write the table of arms as report.csv as well")
    parser.add_argument("--latex", action="store_true", help="write the table of arms as report.tex as well")
    parser.add_argument("--wandb", metavar="ENTITY/PROJECT", help="publish there as a W&B Report as well")
    options = parser.parse_args(argv)
    entity, _, project = (options.wandb or "").partition("/")
    if options.wandb is not None and (not entity or not project or "/" in project):
        parser.error(f"--wandb {options.wandb}: give entity/project, such as my-team/memlab")
    folders = sorted({path.parent.parent for path in options.runs.rglob("manifest.json")})
    faults = [] if folders else [str(no_runs(options.runs))]
    if entity and (missing := _why_not_ready()):
        folders, faults = [], [missing]
    for folder in folders:
        try:
            with enough_memory("report fewer arms: a folder of some of them", str(folder)):
                report = build(folder, seed=options.seed)
            print_report(report.view)
            print(f"report: {report.html}")
            for suffix, write in [(".csv", csv)] * options.csv + [(".tex", latex)] * options.latex:
                atomic_write(path := report.html.with_suffix(suffix), write(report.view))
                print(f"table: {path}")
            if entity:
                print(f"W&B report: {_publish(report, entity, project)}")
        except MemlabError as error:
            faults.append(str(error))
    for fault in faults:
        print(f"memlab: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _why_not_ready() -> str | None:
    """Return what is missing here for a W&B Report, before anything is built or sent; None if nothing is."""
    from memlab.experiment.track.wandb import missing_key
    from memlab.report.wandb_report import client

    try:
        client()
    except MemlabError as error:
        return str(error)
    return missing_key()


def _publish(report: ReportFiles, entity: str, project: str) -> str:
    """Send the arms that are not in the project yet, then the report over them."""
    from memlab.experiment.track.record import find_record
    from memlab.experiment.track.wandb import sync
    from memlab.report.wandb_report import publish

    folder = report.html.parent
    absent = [record for arm in report.view.arms if not (record := find_record(arm.folder)).is_online(entity, project)]
    failed = [place.name for place, where in sync(absent, project, entity) if where is None]
    if failed:
        names = ", ".join(failed[:5]) + (f" and {len(failed) - 5} more" if len(failed) > 5 else "")
        raise MemlabError(f"{len(failed)} of {len(absent)} arms could not be sent to W&B: {names}",
                          where=str(folder), fix="check wandb login and the network, then run the same line again")
    return publish(folder, report.view, entity, project)


if __name__ == "__main__":
    raise SystemExit(main())
