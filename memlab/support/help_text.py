"""Help pages: docstrings laid out for the width of the terminal, and a parser whose ``--help`` is one.

Paragraphs are filled again; examples and columns, which are indented, stay as they are. The marks of code in a
docstring (backticks) are left out.
"""

from __future__ import annotations

import argparse
import inspect
import shutil
import textwrap
from itertools import groupby

MOST = 120
"""Characters of a line at most, however wide the terminal is."""


def page(text: str | None, width: int | None = None) -> str:
    """Return a docstring as a help page.

    >>> print(page("Ask: ``memlab ask``, a\\nquestion.\\n\\nDates:\\n    now=DAY   the day of the question", 40))
    Ask: memlab ask, a question.
    <BLANKLINE>
    Dates:
        now=DAY   the day of the question
    """
    width = min(MOST, width or shutil.get_terminal_size().columns)
    lines = inspect.cleandoc(text or "").replace("`", "").split("\n")
    parts = ((fixed, "\n".join(some)) for fixed, some in groupby(lines, lambda line: line[:1] in ("", " ")))
    return "\n".join(part if fixed else _fill(part, width) for fixed, part in parts)


def _fill(text: str, width: int) -> str:
    return textwrap.fill(text, width, break_long_words=False, break_on_hyphens=False)


class _PageFormatter(argparse.HelpFormatter):
    """Fills descriptions as pages, and breaks no word at a hyphen."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002  (pages have no further indent)
        return page(text, width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _fill(" ".join(text.split()), width).split("\n")


class Parser(argparse.ArgumentParser):
    """A parser whose description and epilog are pages."""

    def __init__(self, *, prog: str | None = None, description: str | None = None, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, formatter_class=_PageFormatter)

    def format_help(self) -> str:
        """Return the help without marks of code."""
        return super().format_help().replace("`", "")
