"""The scenarios as a page of Markdown: what was met, what Gimli's formula can meet, and what each system returned."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.data.scenarios import CASES, Scenario
from memlab.report.markdown import code, escape, table
from memlab.report.scenarios import System, by_category, expected, measured
from memlab.report.scenarios_formula import limits
from memlab.report.scenarios_shown import Marked, Row
from memlab.report.words import EMPTY, figure


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
             "## What Gimli's own formula can meet",
             "score = 0.7 x cosine + 0.3 x 1/(1 + rank by keywords), ranks from 1. The last column has the cosines of "
             "the scenario's pieces, as the first system with vectors saw them; for low relevance, of all that it "
             "ranked.",
             table(["scenario", "target", "can it?", "why", "cosines here"],
                   [[row.category, escape(row.target), row.verdict, escape(row.why), measured(found, row)]
                    for row in limits() if row.category in {category for category, _ in wanted}], 5),
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
