"""A demonstration on embedded data: ``memlab demo [--no-open] [slot=technique] [slot.setting=value]``.

Runs the experiment ``demo``, ``best`` against five published systems, asks each of them one question, and opens the
report in a browser unless ``--no-open`` is given. Arguments are those of ``memlab run``.

Exit status: 0 done, 1 failed, 2 the configuration is faulty, 130 interrupted.
"""

from __future__ import annotations

import os
import re
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from memlab.__main__ import announce
from memlab.experiment.cluster.submit import launch
from memlab.experiment.harness.arm import load
from memlab.experiment.harness.sweep import Sweep, read
from memlab.memory.ask_data import ask_data
from memlab.memory.results import RESULT
from memlab.pipeline.tables import Tables, with_text
from memlab.support.console import Console
from memlab.support.errors import Faults, MemlabError
from memlab.support.help_text import page
from memlab.support.terminal import HELP, print
from memlab.support.text.display import safe_line

EXPERIMENT = "+exp=demo"

QUESTION = "Who is my manager now?"
GOLD = "Who is my manager?"
"""The question of the embedded data that has the same evidence."""

CORPUS = "life-0"
SUBJECT = "manager"

CURRENT, OUTDATED, OTHER, NOTHING = "current fact", "fact that is out of date", "something else", "nothing"

Turn = tuple[int, int]
"""Session and turn; sessions are in the order of their dates."""

_out = Console(soft_wrap=True, highlight=False)


@dataclass(frozen=True)
class FirstResult:
    """What one system shows for the question.

    first: the line of its first result that names the subject, with its day; None if nothing was found. kind: one of
    CURRENT, OUTDATED, OTHER and NOTHING. why: in words.
    """

    system: str
    first: str | None
    kind: str
    why: str


def answers(sweep: Sweep) -> Iterator[FirstResult]:
    """Yield the answer of each arm of a sweep; nothing if its data do not have the question."""
    evidence = find_evidence(load(sweep.arms[0].dataset))
    for arm in sweep.arms if evidence else ():
        result, _ = ask_data(arm, QUESTION, CORPUS, store=sweep.settings.store)
        yield describe(arm.name, result.results, evidence)


def find_evidence(tables: Tables) -> list[Turn]:
    """Return the turns that the data mark as evidence of the question, the latest last."""
    corpus = tables["ids"].filter((pl.col("kind") == "corpus") & (pl.col("name") == CORPUS)).select("corpus")
    asked = with_text(tables["questions"], tables["texts"]).filter(pl.col("text") == GOLD)
    rows = tables["evidence"].join(asked.join(corpus, on="corpus"), on="question", how="semi")
    return sorted(rows.select("session", "turn").drop_nulls().iter_rows())


def describe(system: str, results: pl.DataFrame, evidence: list[Turn]) -> FirstResult:
    """Describe results by rank; those that hold the last turn of the evidence show the current fact.

    The signals that are named are the two in which the first result is ahead of the other one by most.
    """
    rows = results.sort("rank").to_dicts()
    if not rows:
        return FirstResult(system, None, NOTHING, "no result passes its thresholds")
    kinds = [_kind(row, evidence) for row in rows]
    wanted, place = ((OUTDATED, "the fact that is out of date has rank {}") if kinds[0] == CURRENT else
                     (CURRENT, "the current fact has rank {}"))
    if wanted not in kinds:
        missing = "" if wanted == OUTDATED else f"the current fact is not among the first {len(rows)}"
        return FirstResult(system, _first_line(rows[0]), kinds[0], missing)
    other = rows[kinds.index(wanted)]
    why = [place.format(other["rank"]), *_lead(rows[0], other)]
    return FirstResult(system, _first_line(rows[0]), kinds[0], "; ".join(why))


def print_answers(rows: Iterator[FirstResult], out: Console) -> None:
    """Print one row for each system."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    table.add_column("system", no_wrap=True)
    for name in ("shows first", "which is the", "why"):
        table.add_column(name, overflow="fold")
    styles = {CURRENT: "green", OUTDATED: "yellow"}
    for row in rows:
        table.add_row(Text(row.system), Text("-" if row.first is None else row.first),
                      Text("-" if row.first is None else row.kind, styles.get(row.kind, "")), Text(row.why))
    out.print(table, soft_wrap=False)


def _kind(row: dict[str, Any], evidence: list[Turn]) -> str:
    """Return what a result shows; one with both facts shows the current one."""
    held = [turn for turn in evidence if turn[0] == row["session"] and turn[1] in row["turns"]]
    return OTHER if not held else CURRENT if evidence[-1] in held else OUTDATED


def _first_line(row: dict[str, Any]) -> str:
    """Return the line of a result that names the subject, else its first line, with the day and without speaker."""
    bare = (re.sub(r"^(\[[^\]]*\]|\s)*(user: )?", "", line) for line in (row["text"] or "").splitlines())
    lines = [line for line in bare if line and not line.startswith("#")]
    line = next((line for line in lines if SUBJECT in line.lower()), lines[0] if lines else "")
    return safe_line(line) + ("" if row["date"] is None else f" ({row['date']:%Y-%m-%d})")


def _lead(first: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Name the signals in which the first result is ahead of another by most, as a share of their sum; two at most."""
    shares = []
    for name, value in first.items():
        against = other.get(name) or 0.0
        if name not in RESULT and isinstance(value, float) and value > against:
            shares.append(((value - against) / (abs(value) + abs(against)), name, value, against))
    ahead = [f"{name} {value:.2f} against {against:.2f}"
             for _, name, value, against in sorted(shares, key=lambda share: (-share[0], share[1]))[:2]]
    return [f"ahead by {' and '.join(ahead)}"] if ahead else []


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if any(word in HELP for word in words):
        print(page(__doc__))
        return 0
    settings = [word for word in words if word != "--no-open"]
    try:
        status = launch([EXPERIMENT, *settings], False, _out)
        if status:
            return status
        sweep = read([EXPERIMENT, *settings])
        _print_question(list(answers(sweep)))
    except MemlabError as error:
        _out.print(f"[red]memlab:[/red] {escape(str(error))}")
        return 2 if isinstance(error, Faults) else 1
    except KeyboardInterrupt:
        _out.print("\ninterrupted; finished work is kept: run the same command again to continue")
        return 130
    report = sweep.arms[0].folder().parent / "report.html"
    _out.print(f"\nreport: {escape(str(report))}")
    if "--no-open" not in words and has_display():
        webbrowser.open(Path(report).resolve().as_uri())
    return 0


def _print_question(rows: list[FirstResult]) -> None:
    if rows:
        _out.print(f'\n[bold]"{QUESTION}"[/bold], asked of {CORPUS}: what each system shows first, and why')
        print_answers(iter(rows), _out)
        _out.print(f'\nask it yourself: memlab ask corpus={CORPUS} "{QUESTION}"')


def has_display() -> bool:
    """Return whether somebody sits at a screen: output to a terminal, and on Linux a display."""
    if not sys.stdout.isatty() or os.environ.get("SSH_CONNECTION"):
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


if __name__ == "__main__":
    announce("demo", sys.argv[1:])
    raise SystemExit(main())
