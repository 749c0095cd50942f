"""The comparison on the console: the verdict and what to type first, then the table, fitted to the width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memlab.evaluate.compare import Comparison
from memlab.report import units, view_model
from memlab.report.opening import Opening, opening
from memlab.text.display import format_count, format_duration, format_interval, format_number, one_line, plural

if TYPE_CHECKING:

    from memlab.runtime.console import Console

_STYLES = {"up": "bold blue", "down": "bold red", "same": "yellow", "open": "default"}
_ROLES = {"winner": "bold green", "gold": "dim"}

PADDING = 3
"""Characters between two columns."""


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print the verdict, the arms with intervals, tokens and time, then the declared contrasts in words.

    Names and texts are printed as plain text: markup in them has no effect and no escape sequence survives.
    """
    from rich.text import Text

    from memlab.runtime.console import Console

    console, found = console or Console(), opening(comparison)
    _print_verdict(found, comparison["experiment"], console)
    _print_arms(view_model.arms_table(comparison, found), console)
    compared = view_model.compared_arms(comparison)
    for line in (f"compared: {compared}" if compared else "", _shared_time(comparison)):
        if line:
            console.print(Text(one_line(line), style="dim"))
    _print_findings(comparison, console)


def print_arm(comparison: Comparison, name: str, console: Console | None = None) -> None:
    """Print one arm's figures, one per line, then the findings of the comparison; other arms are in the report."""
    from rich.table import Table
    from rich.text import Text

    from memlab.runtime.console import Console

    console = console or Console()
    arm = comparison["arms"][name]
    _print_verdict(opening(comparison), comparison["experiment"], console)
    table = Table(header_style="", padding=(0, 1), show_edge=False)
    table.add_column(Text(one_line(name)), overflow="fold")
    table.add_column("", justify="right")
    table.add_column("95 % interval", justify="right")
    judged = [m for m in view_model.judge_metrics(comparison) if m in arm["metrics"]]
    costs = ("answer/prompt_tokens_mean", "answer/completion_tokens_mean") if judged else ()
    for metric in [*judged, *view_model.ALONE, "context/tokens_mean", "selected/k_mean", *costs]:
        if metric in arm["metrics"]:
            estimate = arm["metrics"][metric]
            write = format_count if metric.endswith("_mean") else format_number
            table.add_row(metric, write(estimate["value"]), format_interval(estimate["low"], estimate["high"], write))
    for words in view_model.verdict_badges(arm):
        table.add_row(Text(one_line(words)), "", "")
    table.add_row("time", format_duration(arm["seconds"]), "")
    console.print(table)
    others = len(comparison["arms"]) - 1
    if others:
        console.print(Text(f"beside it in the report: {plural(others, 'other arm')}", style="dim"))
    if shared := _shared_time(comparison):
        console.print(Text(shared, style="dim"))
    _print_findings(comparison, console)


def _print_verdict(found: Opening, experiment: str, console: Console) -> None:
    """Print the verdict, how sure it is, what to type, and the data: green where an arm wins, else yellow."""
    from rich.text import Text

    console.print(Text(one_line(found.sentence), style="bold green" if found.winner else "bold yellow"))
    for sentence in found.sure:
        console.print(Text(f"  {one_line(sentence)}"))
    for label, text in found.act:
        console.print(Text(f"  {label}: ", style="dim").append(one_line(text), style="bold cyan"), soft_wrap=True)
    console.print(Text(f"\n{one_line(experiment)} on {one_line(found.data)}", style="dim"))


def _print_arms(arms: view_model.ArmsTable, console: Console) -> None:
    """Print the table of arms with as many columns as fit beside the names, which are never broken."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    heads = [name.replace("/", "/\n") for name, _ in arms.heads]
    widths = [max(cell_len(line) for text in texts for line in text.split("\n")) for texts in (
        [head, *(f"{row.cells[i].text}\n{row.cells[i].detail}" for row in arms.rows)] for i, head in enumerate(heads))]
    names = [f"{'▸' if row.role == 'winner' else ' '} {one_line(row.name)}" for row in arms.rows]
    longest = max(map(cell_len, [*names, "arm"]))
    kept = fitting(widths, [name for name, _ in arms.heads], console.width - longest - PADDING)
    table = Table(header_style="", padding=(0, 1), show_edge=False)
    table.add_column("  arm", overflow="fold", min_width=min(longest, console.width - 2 * PADDING))
    for at in kept:
        table.add_column(Text(heads[at]), justify="right", no_wrap=True)
    for row, name in zip(arms.rows, names):
        arm = Text(name, style=_ROLES.get(row.role, "default"))
        arm.append("".join(f"\n  {one_line(badge)}" for badge in row.badges), style="dim italic")
        cells = []
        for at in kept:
            cell = row.cells[at]
            text = Text(cell.text, style=_ROLES.get(row.role, "default"))
            cells.append(text.append(f"\n{cell.detail}" if cell.detail else "", style="dim"))
        table.add_row(arm, *cells)
    console.print(table)
    left_out = len(heads) - len(kept)
    first = arms.heads[0][0] if arms.heads else ""
    meaning = f"{first}: {units.label(first)}, in %" if units.is_share(first) else ""
    for line in (meaning, arms.same, f"{plural(left_out, 'more column')} in the report" if left_out else ""):
        if line:
            console.print(Text(one_line(line), style="dim"))


def fitting(widths: Sequence[int], names: Sequence[str], room: int) -> list[int]:
    """Return the places of the columns that fit: the first metric, then tokens, time, further metrics, and K.

    >>> fitting([10, 10, 10, 6, 4, 6], ["a/b", "a/c", "a/d", "tokens", "K", "time"], 50)
    [0, 1, 3, 5]
    """
    order = sorted(range(len(names)), key=lambda at: (
        0 if at == 0 else {"tokens": 1, "time": 2, "K": 4}.get(names[at], 3), at))
    kept: list[int] = []
    for at in order:
        if sum(widths[i] + PADDING for i in (*kept, at)) > room:
            break
        kept.append(at)
    return sorted(kept)


def _shared_time(comparison: Comparison) -> str:
    """Return the time of the work that all arms share; "" where none was done."""
    seconds = comparison["shared_seconds"]
    return f"data, models and indexes, made once for all arms: {format_duration(seconds)}" if seconds >= 1 else ""


def _print_findings(comparison: Comparison, console: Console) -> None:
    """Print the contrasts in words, the notices and the notes."""
    from rich.text import Text

    for contrast in view_model.contrast_rows(comparison):
        console.print(Text("• ").append(one_line(contrast.words), style=_STYLES[contrast.tone]))
    for heading, sentence in view_model.notices(comparison):
        console.print(Text(f"! {heading}: ", style="yellow").append(one_line(sentence), style="default"))
    for note in comparison["notes"]:  # which outputs two arms share is in the report
        console.print(Text(f"  {one_line(note)}", style="dim"))
