"""Help pages: docstrings laid out for the width of the terminal, and a parser whose ``--help`` is one.

Paragraphs are filled again, examples stay lines to paste, and a column of descriptions keeps its place. The marks of
code in a docstring (backticks) are left out.
"""

from __future__ import annotations

import argparse
import inspect
import re
import shutil
import textwrap
from collections.abc import Iterator
from itertools import groupby

MOST = 120
"""Characters of a line at most, however wide the terminal is."""

_COLUMNS = re.compile(r"( +\S+(?: \S+)*)  +(\S.*)")
_ROOM = 24
"""Characters that a description needs beside what it describes; with fewer it stands below."""


def page(text: str | None, width: int | None = None) -> str:
    """Return a docstring as a help page.

    >>> print(page("Ask: ``memlab ask``.\\n\\nDates:\\n    now=DAY   the day of\\n              the question", 40))
    Ask: memlab ask.
    <BLANKLINE>
    Dates:
        now=DAY   the day of the question
    """
    width = min(MOST, width or shutil.get_terminal_size().columns)
    lines = inspect.cleandoc(text or "").replace("`", "").split("\n")
    blocks = (list(block) for blank, block in groupby(lines, key=lambda line: not line.strip()) if not blank)
    return "\n\n".join("\n".join(_laid_out(block, width)) for block in blocks)


def _laid_out(block: list[str], width: int) -> Iterator[str]:
    """Yield the lines of a block: the prose filled, each example with its description."""
    for indented, part in groupby(block, key=lambda line: line.startswith(" ")):
        if indented:
            for entry in _entries(list(part)):
                yield from _entry(entry, width)
        else:
            yield _filled(" ".join(part), width)


def _entries(lines: list[str]) -> Iterator[str]:
    """Yield indented lines, with those that continue a description joined to it."""
    entry, column = "", 0
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if entry and indent >= column > 0:
            entry += f" {line.strip()}"
            continue
        if entry:
            yield entry
        entry = line
        match = _COLUMNS.fullmatch(line)
        column = match.start(2) if match else 0
    yield entry


def _entry(entry: str, width: int) -> Iterator[str]:
    """Yield the lines of an example or a name, and of its description."""
    match = _COLUMNS.fullmatch(entry)
    if not match:
        yield entry
        return
    head, description, column = match[1], match[2], match.start(2)
    if len(entry) > width and width - column < _ROOM:
        yield head
        column = len(head) - len(head.lstrip()) + 4
        head = ""
    yield _filled(description, width, head.ljust(column), " " * column)


def _filled(text: str, width: int, first: str = "", others: str = "") -> str:
    return textwrap.fill(text, width, initial_indent=first, subsequent_indent=others, break_long_words=False,
                         break_on_hyphens=False)


class _PageFormatter(argparse.HelpFormatter):
    """Fills descriptions as pages, and breaks no word at a hyphen."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002  (pages have no further indent)
        return page(text, width)

    def _split_lines(self, text: str, width: int) -> list[str]:
        return _filled(" ".join(text.split()), width).split("\n")


class Parser(argparse.ArgumentParser):
    """A parser whose description and epilog are pages."""

    def __init__(self, *, prog: str | None = None, description: str | None = None, epilog: str | None = None) -> None:
        super().__init__(prog=prog, description=description, epilog=epilog, formatter_class=_PageFormatter)

    def format_help(self) -> str:
        """Return the help without marks of code."""
        return super().format_help().replace("`", "")
