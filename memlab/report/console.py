"""A report on the terminal: the summary of its Markdown, with the commands in lines that are never broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from memlab.report import markdown
from memlab.report.view_model import ReportView
from memlab.support.text.display import safe_line

if TYPE_CHECKING:
    from memlab.support.console import Console


def print_report(view: ReportView, console: Console | None = None, arm: str | None = None) -> None:
    """Print the verdict, the commands to copy and the summary; with ``arm``, that arm's figures in place of the arms.

    Names and texts are printed as plain text: markup in them has no effect and no escape sequence survives.
    """
    from rich import console as rich_console
    from rich.markdown import Markdown, MarkdownElement, TableElement
    from rich.table import Table
    from rich.text import Text

    from memlab.support.console import Console

    class FoldedTable(TableElement):
        """A table whose names are whole as far as the width allows, and then folded, where Rich would cut them."""

        def __rich_console__(self, console: rich_console.Console, options: rich_console.ConsoleOptions
                             ) -> rich_console.RenderResult:
            for table in super().__rich_console__(console, options):
                if isinstance(table, Table):
                    names = table.columns[0]
                    longest = max(console.measure(name).maximum for name in names.cells)
                    names.min_width = min(longest, options.max_width * 2 // 3)
                    for column in table.columns:
                        column.overflow = "fold"
                yield table

    class Folded(Markdown):
        """Markdown with such tables."""

        elements: ClassVar[dict[str, type[MarkdownElement]]] = {**Markdown.elements, "table_open": FoldedTable}

    console, opening = console or Console(), view.opening
    console.print(Text(safe_line(opening.sentence), style="bold green" if opening.winner else "bold yellow"))
    console.print(Folded(markdown.sure(view)), soft_wrap=False)  # a pipe's console wraps nothing else
    for label, text in opening.act:
        console.print(Text(f"{label}: ", style="dim").append(safe_line(text), style="bold cyan"), soft_wrap=True)
    console.print(Folded(markdown.summary(view, arm)), soft_wrap=False)
