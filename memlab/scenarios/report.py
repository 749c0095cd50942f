"""Scenarios, system by system: ``python -m memlab.scenarios.report runs/EXP/scenarios`` prints and writes the table.

What is expected is reported, not required. ``scenarios.md`` beside the arms has every expectation with its figures,
what Gimli's own formula can meet, and what each system returned in every case.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from memlab.errors import MemlabError
from memlab.harness.results import ArmRun, finished
from memlab.report.markdown import code, escape, table
from memlab.scenarios.check import Outcome, outcomes, pieces
from memlab.scenarios.dataset import CASES, CATEGORIES, Scenario
from memlab.text.display import EMPTY, figure, one_line
from memlab.text.tokenize import LUCENE_STOP_WORDS

if TYPE_CHECKING:
    from rich.console import Console


LETTERS = 160
"""Letters of a snippet."""
_WORD = re.compile(r"\w+")

Marked = list[tuple[str, bool]]
"""A text in parts, each with whether the question holds it, too."""


class Row(NamedTuple):
    """One returned unit; ``holds`` names the pieces in it, ``returned`` tells whether it was selected."""

    rank: int
    score: float
    returned: bool
    holds: tuple[str, ...]
    source: str
    said_on: datetime | None
    snippet: Marked


def rows(arm: ArmRun, ids: pl.DataFrame, case: str, top: int) -> list[Row]:
    """Return the first ``top`` returned units of a case, and those that hold a piece (of the 20 that are kept)."""
    question = ids.filter(kind="question", name=case)["question"].item()
    held = {place: name for name, place in pieces(ids).get(case, {}).items()}
    sources = _sources(ids, arm.questions.filter(question=question)["corpus"].item())
    asked = arm.questions.filter(question=question)["text"].item()
    scores = arm.ranking.select("question", "rank", "score")
    shown = arm.shown.filter(question=question).join(scores, on=["question", "rank"], how="left").sort("rank")
    out = []
    for row in shown.iter_rows(named=True):
        holds = tuple(held[row["session"], turn] for turn in row["turns"] if (row["session"], turn) in held)
        if holds or (row["selected"] and row["rank"] <= top):
            out.append(Row(row["rank"], row["score"], row["selected"], holds, sources.get(row["session"], "session"),
                           row["said_on"], snippet(row["text"] or "", asked)))
    return out


def _sources(ids: pl.DataFrame, corpus: int) -> dict[int, str]:
    """Return session -> "memory file X" or its own name."""
    named = ids.filter(kind="session", corpus=corpus).select("session", "name")
    return {session: f"memory file {name}" if name.endswith(".md") else name for session, name in named.iter_rows()}


def snippet(text: str, question: str, letters: int = LETTERS) -> Marked:
    """Cut a text around its first matched term, and mark all of them; terms match by their stems, stop words do not.

    >>> snippet("user: My cats sleep.", "Where is the cat?")
    [('user: My ', False), ('cats', True), (' sleep.', False)]
    """
    line = one_line(text)
    wanted = set(_stems(_WORD.findall(question.lower()))) - set(_stems(LUCENE_STOP_WORDS))
    found = list(_WORD.finditer(line))
    hits = [m for m, stem in zip(found, _stems(m[0].lower() for m in found)) if stem in wanted]
    start = max(min(hits[0].start() - letters // 3, len(line) - letters), 0) if hits else 0
    stop = min(start + letters, len(line))
    return list(_marked(line, start, stop, [m.span() for m in hits]))


def _marked(line: str, start: int, stop: int, spans: list[tuple[int, int]]) -> Iterator[tuple[str, bool]]:
    at = start
    if start > 0:
        yield "…", False
    for begin, end in spans:
        if begin >= start and end <= stop:
            if begin > at:
                yield line[at:begin], False
            yield line[begin:end], True
            at = end
    if at < stop:
        yield line[at:stop], False
    if stop < len(line):
        yield "…", False


def _stems(terms: Iterable[str]) -> list[str]:
    import Stemmer

    return list(Stemmer.Stemmer("english").stemWords(list(terms)))


def document(found: Sequence[System], broken: Sequence[str], top: int) -> str:
    """Render the page; texts, names and paths from the runs are escaped."""
    names = [escape(system.name) for system in found]
    wanted = expected(found)
    parts = ["# Scenarios, system by system",
             "Expectations are reported, not required: three cases a scenario are a demonstration, no test.",
             *(f"> **Left out:** {escape(fault)}" for fault in broken),
             "## Expectations met, over all cases",
             table(["scenario", *names], [[category, *cells] for category, cells in by_category(found)]),
             "## Each expectation",
             "In how many cases it is met, and the figure of each case: a rank, a score, a share, or how many were "
             "returned. Scores are the system's own. Vector and keyword shares are Gimli's, for every system that has "
             "the lane: 0.7 x cosine against 0.3 x 1/(1 + rank by keywords).",
             table(["scenario", "expected", *names],
                   [[category, escape(words), *(escape(s.cell((category, words))) for s in found)]
                    for category, words in wanted], 2),
             "## What was returned",
             f"The first {top} of each system, and every unit among the first 20 that holds a piece (its name in "
             "brackets); terms of the question are bold, and what was ranked but not returned is in italics."]
    asked = {(o.category, o.case) for system in found for o in system.outcomes}
    for scenario in CASES.values():
        if (scenario.category, scenario.case) in asked:
            parts += [_case(scenario, found, top)]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _case(scenario: Scenario, found: Sequence[System], top: int) -> str:
    lines = [f"### {scenario.name}", f"{escape(scenario.question)} ({escape(scenario.answer)})"]
    body = []
    for system in found:
        met = [o for o in system.outcomes if (o.category, o.case) == (scenario.category, scenario.case)]
        if met:
            rows = system.shown(scenario.name, top)
            body += [_row(system.name if i == 0 else "", row) for i, row in enumerate(rows)] or [
                [escape(system.name), "", "", "", "", "nothing"]]
            lines.append(f"* {escape(system.name)}: " + "; ".join(
                f"{escape(o.expect.words())}: {_verdict(o.met)} ({escape(o.said)})" for o in met))
    return "\n".join([lines[0], "", lines[1], "", *lines[2:], "", table(
        ["system", "rank", "score", "day", "source", "snippet"], body, 6)])


def _verdict(met: bool | None) -> str:
    return EMPTY if met is None else "met" if met else "not met"


def _row(name: str, row: Row) -> list[str]:
    pieces = f" ({escape(', '.join(row.holds))})" if row.holds else ""
    said = _bold(row.snippet)
    return [escape(name), str(row.rank), figure(row.score), f"{row.said_on:%Y-%m-%d}" if row.said_on else EMPTY,
            code(row.source) + pieces, said if row.returned else f"*{said.strip()}*"]


def _bold(snippet: Marked) -> str:
    """Write a snippet; escaping puts a text on one line and trims it, so the blanks around a part are kept apart."""
    out = ""
    for text, marked in snippet:
        inner = escape(text)
        left, right = text[:1].isspace(), text[-1:].isspace()
        out += f"**{inner}**" if marked else " " * left + inner + " " * (right and bool(inner))
    return out.strip()


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
    pass

    parser = argparse.ArgumentParser(prog="python -m memlab.scenarios.report", description=__doc__)
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
