"""Report on the scenarios: ``memlab experiment scenarios runs/EXP/scenarios`` prints and writes the tables.

Expectations are reported, not required. ``scenarios.md`` beside the arms lists every expectation with its figures, and
the units that each system returned in every case.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from memlab.experiment.harness.results import ArmRun, finished_arms
from memlab.report.markdown import code, escape, plain, table
from memlab.report.sections import PlainTable
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write
from memlab.support.help_text import Parser
from memlab.support.paths import path_argument
from memlab.support.terminal import print
from memlab.support.text.display import EMPTY, format_number, safe_line
from scenarios.cases import CATEGORIES, KNOWN, Outcome, Scenario, outcomes, piece_places
from scenarios.snippets import Snippet, snippet

Expected = tuple[str, str]
"""(category, label of the expectation)"""

class ReturnedUnit(NamedTuple):
    """One row of a case's table; ``pieces`` are the names of pieces in the unit; ``returned``: it was selected."""

    rank: int
    score: float
    returned: bool
    pieces: tuple[str, ...]
    source: str
    said_on: datetime | None
    snippet: Snippet


@dataclass(frozen=True)
class System:
    """One arm on the scenarios, with the outcome of every expectation."""

    arm: ArmRun
    outcomes: tuple[Outcome, ...]

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.arm.name

    def cell(self, expected: Expected) -> str:
        """Format how many cases meet an expectation, and the figure of each case."""
        cases = [o for o in self.outcomes if (o.category, o.expect.label) == expected]
        defined = [o for o in cases if o.met is not None]
        if not defined:
            return EMPTY
        return f"{sum(bool(o.met) for o in defined)}/{len(defined)}: " + ", ".join(o.value for o in cases)

    def units(self, case: str, top: int) -> list[ReturnedUnit]:
        """Return the first ``top`` returned units of a case, and those of the 20 in the run folder with a piece."""
        question, corpus, text = self.arm.questions.join(
            self.arm.ids.filter(kind="question", name=case), on="question").select("question", "corpus", "text").row(0)
        names = {place: name for name, place in piece_places(self.arm.ids).get(case, {}).items()}
        sources = dict(self.arm.ids.filter(kind="session", corpus=corpus).select("session", "name").iter_rows())
        scores = self.arm.ranking.select("question", "rank", "score")
        rows = self.arm.shown.filter(question=question).join(scores, on=["question", "rank"], how="left").sort("rank")
        units = []
        for row in rows.iter_rows(named=True):
            pieces = tuple(names[row["session"], turn] for turn in row["turns"] if (row["session"], turn) in names)
            if pieces or (row["selected"] and row["rank"] <= top):
                source = sources.get(row["session"], "session")
                units.append(ReturnedUnit(row["rank"], row["score"], row["selected"], pieces,
                                        f"memory file {source}" if source.endswith(".md") else source,
                                        row["said_on"], snippet(row["text"] or "", text)))
        return units


def systems(folder: Path) -> tuple[list[System], list[str]]:
    """Read the finished arms of a folder on data=scenarios; return them, and the errors of those left out.

    Raises MemlabError if there is none, or if they ran on other data.
    """
    runs = finished_arms(folder)
    if not runs.arms:
        raise MemlabError("there is no finished run", where=str(folder), fix="give runs/EXPERIMENT/scenarios")
    out = []
    for arm in runs.arms:
        benchmark = arm.manifest["data"].get("benchmark")
        if benchmark != "scenarios":
            raise MemlabError(f"the data of '{arm.name}' is {benchmark}", where=str(folder),
                              fix="run the arms with plugins=[scenarios] data=scenarios")
        out.append(System(arm, tuple(outcomes(arm.ranking, arm.ids, arm.shown))))
    return out, list(runs.broken)


def expectations(arms: Sequence[System]) -> list[Expected]:
    """List the expectations that at least one system was checked against, in the order of the scenarios."""
    checked = {(o.category, o.expect.label) for system in arms for o in system.outcomes}
    expected_in_order = [(scenario.category, expect.label) for scenario in KNOWN.values() for expect in scenario.expect]
    return [expected for expected in dict.fromkeys(expected_in_order) if expected in checked]


def by_category(arms: Sequence[System]) -> list[tuple[str, list[str]]]:
    """Return (category, for each system the number of expectations met, and of all)."""
    rows = []
    for category in CATEGORIES:
        met = [[o.met for o in system.outcomes if o.category == category and o.met is not None] for system in arms]
        if any(met):
            rows.append((category, [f"{sum(map(bool, c))}/{len(c)}" if c else EMPTY for c in met]))
    return rows


def document(arms: Sequence[System], broken: Sequence[str], top: int) -> str:
    """Render the page; all texts, names and paths from the runs are escaped."""
    names = [escape(system.name) for system in arms]
    parts = ["# Scenarios, system by system",
             "Expectations are reported, not required: three cases per scenario are a demonstration, not a test.",
             *(f"> **Left out:** {escape(fault)}" for fault in broken),
             "## Expectations met, over all cases",
             table(["scenario", *names], [[category, *cells] for category, cells in by_category(arms)]),
             "## Each expectation",
             "The number of cases that meet it, and the figure of each case: a rank, a score, both parts of the score, "
             "or how many units were returned. Scores are the system's own. The vector and keyword parts are Gimli's, "
             "for every system that has the lane: 0.7 x cosine against 0.3 x 1/(1 + keyword rank).",
             table(["scenario", "expected", *names],
                   [[category, escape(label), *(escape(system.cell((category, label))) for system in arms)]
                    for category, label in expectations(arms)], 2),
             "## Returned units",
             f"The first {top} units of each system, and every unit among the first 20 with a piece (its name in "
             "brackets). Terms of the question are bold; units that were ranked but not returned are in italics."]
    cases = {(o.category, o.case) for system in arms for o in system.outcomes}
    parts += [_case(scenario, arms, top) for scenario in KNOWN.values()
              if (scenario.category, scenario.case) in cases]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _case(scenario: Scenario, arms: Sequence[System], top: int) -> str:
    results, rows = [], []
    for system in arms:
        case_outcomes = [o for o in system.outcomes if (o.category, o.case) == (scenario.category, scenario.case)]
        if case_outcomes:
            rows += [_cells(system.name if i == 0 else "", unit)
                     for i, unit in enumerate(system.units(scenario.name, top))] or [
                [escape(system.name), "", "", "", "", "nothing"]]
            results.append(f"* {escape(system.name)}: " + "; ".join(
                f"{escape(o.expect.label)}: {_verdict(o.met)} ({escape(o.value)})" for o in case_outcomes))
    return "\n".join([f"### {scenario.name}", "", f"{escape(scenario.question)} ({escape(scenario.answer)})", "",
                      *results, "", table(["system", "rank", "score", "day", "source", "snippet"], rows, 6)])


def _verdict(met: bool | None) -> str:
    return EMPTY if met is None else "met" if met else "not met"


def _cells(name: str, unit: ReturnedUnit) -> list[str]:
    pieces = f" ({escape(', '.join(unit.pieces))})" if unit.pieces else ""
    text = _bold(unit.snippet)
    day = f"{unit.said_on:%Y-%m-%d}" if unit.said_on else EMPTY
    return [escape(name), str(unit.rank), format_number(unit.score), day, code(unit.source) + pieces,
            text if unit.returned else f"*{text.strip()}*"]


def _bold(snippet: Snippet) -> str:
    """Format a snippet; ``escape`` trims its text, so the spaces around each part are added back."""
    out = ""
    for text, is_term in snippet:
        inner = escape(text)
        left, right = text[:1].isspace(), text[-1:].isspace()
        out += f"**{inner}**" if is_term else " " * left + inner + " " * (right and bool(inner))
    return out.strip()


def counts(arms: Sequence[System]) -> str:
    """Return the table of expectations met, with numbers in place of the systems' names, which stand below."""
    numbers = {str(number): system.name for number, system in enumerate(arms, 1)}
    return plain(PlainTable(
        "Expectations met, over the cases of each scenario; reported, not required", ("scenario", *numbers),
        tuple((category, *cells) for category, cells in by_category(arms)),
        ", ".join(f"{number} {name}" for number, name in numbers.items())))


def main(argv: Sequence[str] | None = None) -> int:
    """Print the tables and write scenarios.md beside the arms; return 1 with a message if that fails."""
    parser = Parser(prog="memlab experiment scenarios", description=__doc__)
    parser.add_argument("runs", type=path_argument, help="runs/<experiment>/scenarios")
    parser.add_argument("--top", type=int, default=3, help="returned units per case in scenarios.md (default 3)")
    options = parser.parse_args(argv)
    try:
        arms, broken = systems(options.runs)
        page = options.runs / "scenarios.md"
        atomic_write(page, document(arms, broken, max(options.top, 1)))
    except MemlabError as error:
        print(f"memlab: {safe_line(error)}", file=sys.stderr)
        return 1
    print(counts(arms))
    for fault in broken:
        print(f"memlab: left out: {safe_line(fault)}", file=sys.stderr)
    print(f"details: {page}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
