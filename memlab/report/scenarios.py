"""Scenarios, system by system: ``python -m memlab.report.scenarios runs/EXP/scenarios`` prints and writes the table.

What is expected is reported, not required. ``scenarios.md`` beside the arms has every expectation with its figures,
what Gimli's own formula can meet, and what each system returned in every case.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from memlab.data.scenarios import CASES, CATEGORIES
from memlab.errors import MemlabError
from memlab.evaluate.scenarios import Outcome, outcomes, pieces, with_text_scores
from memlab.report.folders import ArmRun, finished
from memlab.report.scenarios_formula import Limit
from memlab.report.scenarios_shown import Row, rows
from memlab.report.words import EMPTY, one_line

if TYPE_CHECKING:
    from rich.console import Console

Expected = tuple[str, str]
"""(category, expectation in words)"""


@dataclass(frozen=True)
class System:
    """One arm on the scenarios, and what became of every expectation."""

    arm: ArmRun
    ids: pl.DataFrame
    outcomes: tuple[Outcome, ...]

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.arm.name

    def of(self, expected: Expected) -> list[Outcome]:
        """Return the outcomes of one expectation, a case each."""
        return [o for o in self.outcomes if (o.category, o.expect.words()) == expected]

    def cell(self, expected: Expected) -> str:
        """Write in how many cases an expectation is met, and the figure of each."""
        found = self.of(expected)
        told = [o for o in found if o.met is not None]
        if not told:
            return EMPTY
        return f"{sum(bool(o.met) for o in told)}/{len(told)}: " + ", ".join(o.said for o in found)

    def shown(self, case: str, top: int) -> list[Row]:
        """Return what was returned first in a case."""
        return rows(self.arm, self.ids, case, top)

    @cached_property
    def cosines(self) -> dict[str, tuple[float, float]]:
        """Category -> least and greatest cosine of its pieces; where nothing is relevant, of all that was ranked."""
        ranking = with_text_scores(self.arm.ranking).filter(pl.col("cosine").is_not_null())
        asked = dict(self.ids.filter(kind="question").select("name", "question").iter_rows())
        held = pieces(self.ids)
        values: dict[str, list[float]] = {}
        for name in asked.keys() & CASES.keys():
            units = ranking.filter(question=asked[name])
            if name in held:
                said = pl.DataFrame(list(held[name].values()), orient="row",
                                    schema={"session": pl.Int32, "turn": pl.Int32})
                units = units.explode("turns").join(said, left_on=["session", "turns"], right_on=["session", "turn"])
            values.setdefault(CASES[name].category, []).extend(units["cosine"])
        return {category: (min(found), max(found)) for category, found in values.items() if found}


def systems(folder: Path) -> tuple[list[System], list[str]]:
    """Read the finished arms of a folder on data=scenarios, and say what could not be read.

    Raises MemlabError where there is none, or where they ran on other data.
    """
    found = finished(folder)
    if not found.arms:
        raise MemlabError("no finished run is here", where=str(folder), fix="give runs/EXPERIMENT/scenarios")
    out = []
    for arm in found.arms:
        benchmark = arm.manifest.get("data", {}).get("benchmark")
        if benchmark != "scenarios":
            raise MemlabError(f"the data of '{arm.name}' is {benchmark}", where=str(folder),
                              fix="run the arms with data=scenarios")
        try:
            ids = pl.read_parquet(arm.folder / "ids.parquet")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise MemlabError(f"cannot be read ({error})", where=str(arm.folder / "ids.parquet"),
                              fix=f"delete the folder {arm.folder} and run the arm again") from error
        out.append(System(arm, ids, tuple(outcomes(arm.ranking, ids))))
    return out, list(found.broken)


def expected(found: Sequence[System]) -> list[Expected]:
    """Name every expectation that some system was held against, in the order of the scenarios."""
    there = {(o.category, o.expect.words()) for system in found for o in system.outcomes}
    listed = [(s.category, e.words()) for s in CASES.values() for e in s.expect]
    return [e for e in dict.fromkeys(listed) if e in there]


def measured(found: Sequence[System], limit: Limit) -> str:
    """Write the cosines of a limit's scenario, as the first system with vectors saw them."""
    for system in found:
        if limit.category in system.cosines:
            low, high = system.cosines[limit.category]
            return f"{high:.2f} at most" if limit.category == "low-relevance" else f"{low:.2f} to {high:.2f}"
    return EMPTY


def print_scenarios(found: Sequence[System], console: Console | None = None) -> None:
    """Print in how many cases of a scenario each system met what is expected; names are printed as plain text."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    console.print(Text("expectations met, over the cases of a scenario; reported, not required", "dim"))
    table = Table(header_style="", padding=(0, 1, 0, 0), box=None)
    table.add_column("scenario", no_wrap=True)
    for number in range(1, len(found) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    for category, counts in by_category(found):
        cells = [Text(told) for told in counts]
        for cell in cells:
            met, _, of = cell.plain.partition("/")
            cell.stylize("blue" if met == of else "red" if met == "0" else "default")
        table.add_row(category, *cells)
    console.print(table)
    for number, system in enumerate(found, 1):
        console.print(Text(f"{number:2d} {one_line(system.name)}"))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables, and write scenarios.md beside the arms; exit status 1 with a message where that fails."""
    from memlab.report.scenarios_page import document

    parser = argparse.ArgumentParser(prog="python -m memlab.report.scenarios", description=__doc__)
    parser.add_argument("runs", type=Path, help="runs/<experiment>/scenarios")
    parser.add_argument("--top", type=int, default=3, help="returned units that scenarios.md shows a case (default 3)")
    given = parser.parse_args(argv)
    try:
        found, broken = systems(given.runs)
        page = given.runs / "scenarios.md"
        try:
            page.write_text(document(found, broken, max(given.top, 1)), encoding="utf-8")
        except OSError as error:
            raise MemlabError(f"cannot be written ({error.strerror or error})", where=str(page)) from error
    except MemlabError as error:
        print(f"memlab: {one_line(error)}", file=sys.stderr)
        return 1
    print_scenarios(found)
    for fault in broken:
        print(f"memlab: left out: {one_line(fault)}", file=sys.stderr)
    print(f"details: {page}")
    return 0


def by_category(found: Sequence[System]) -> list[tuple[str, list[str]]]:
    """Return, a scenario, how many of all its expectations each system met, over its cases."""
    out = []
    for category in CATEGORIES:
        counts = [[o.met for o in system.outcomes if o.category == category and o.met is not None] for system in found]
        if any(counts):
            out.append((category, [f"{sum(map(bool, c))}/{len(c)}" if c else EMPTY for c in counts]))
    return out


if __name__ == "__main__":
    raise SystemExit(main())
