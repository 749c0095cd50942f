"""Build reports from finished runs: ``python -m memlab.report RUNS``, RUNS a data folder or one above some."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from memlab.errors import MemlabError
from memlab.report.build import build
from memlab.report.console import print_comparison


def main(argv: Sequence[str] | None = None) -> int:
    """Build one report for every folder with finished arms; exit status 1 if there is none or one fails."""
    parser = argparse.ArgumentParser(prog="python -m memlab.report", description=__doc__)
    parser.add_argument("runs", type=Path, help="runs/<experiment>/<data>, or a folder above")
    parser.add_argument("--seed", type=int, default=0, help="seed of the resamples behind the intervals (default 0)")
    given = parser.parse_args(argv)
    folders = sorted({path.parent.parent for path in given.runs.rglob("manifest.json")})
    faults = [] if folders else [f"no finished run under {given.runs} (a finished run has a manifest.json)"]
    for folder in folders:
        try:
            built = build(folder, seed=given.seed)
        except MemlabError as error:
            faults.append(str(error))
        else:
            print_comparison(built.comparison)
            print(f"report: {built.html}")
    for fault in faults:
        print(f"memlab: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
