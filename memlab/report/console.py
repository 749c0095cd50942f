"""The comparison as a table on the console, for the end of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from memlab.report import view
from memlab.report.words import one_line

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"up": "bold blue", "down": "bold red", "same": "yellow", "open": "default"}


def print_comparison(comparison: dict[str, Any], console: Console | None = None) -> None:
    """Print the arms with intervals, marks, tokens and seconds, then the declared contrasts in words.

    Names and words are printed as plain text: no markup in them is obeyed and no escape sequence survives.
    """
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = console or Console()
    columns = view.metric_columns(comparison)
    narrow = console.width < 26 + 15 * (len(columns) + 3)
    if narrow:  # intervals wrap under their figures; fewer metrics keep each on one line
        columns = columns[: max(1, (console.width - 46) // 17)]
    title = f"{comparison['experiment']} on {comparison['data']}: {comparison['questions']:,} questions"
    table = Table(title=Text(one_line(title), style="bold"), title_justify="left", header_style="", padding=(0, 1),
                  show_edge=False)
    table.add_column("arm", overflow="fold")
    for metric in columns:
        table.add_column(Text(metric.replace("/", "/\n") if narrow else metric.rpartition("/")[0] + "\n"
                              + metric.rpartition("/")[2]), justify="right")
    for name in ("tokens", "K", "time"):
        table.add_column(name, justify="right")
    places = [*range(len(columns)), -3, -2, -1]
    for row in view.arm_rows(comparison):
        who = Text(one_line(row.name))
        who.append("".join(f"\n{one_line(b)}" for b in row.badges), style="dim italic")
        cells = []
        for at in places:
            cell = row.cells[at]
            written = Text("".join(sign for sign, _ in cell.marks), style="blue")
            written.append((" " if cell.marks else "") + cell.text, style="default")
            written.append(f"\n{cell.detail}" if cell.detail else "", style="dim")
            cells.append(written)
        table.add_row(who, *cells)
    console.print(table)
    console.print(Text("▲ ▼ declared contrast, adjusted p < .05; △ ▽ exploratory; below each figure its 95 % interval",
                       style="dim"))
    for contrast in view.contrast_rows(comparison):
        console.print(Text("• ").append(one_line(contrast.words), style=_STYLES[contrast.tone]))
    for heading, sentence in view.notices(comparison):
        console.print(Text(f"! {heading}: ", style="yellow").append(one_line(sentence), style="default"))
    for note in view.notes(comparison):
        console.print(Text(f"  {one_line(note)}", style="dim"))
