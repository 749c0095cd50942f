"""Errors that a user reads: what was wrong, where, what was expected and how to fix it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

CHANGES_RESULTS = False

HIDDEN: set[str] = set()
"""Values that no message shows: those that a configuration took from the environment (``memlab.runtime.redaction``)."""


def hide(text: str) -> str:
    """Return a text without the hidden values."""
    for value in sorted(HIDDEN, key=lambda value: (-len(value), value)):  # a part after the whole
        text = text.replace(value, "***")
    return text


class MemlabError(Exception):
    """A fault that the user can mend; commands print it without a traceback.

    >>> print(MemlabError("date is not a date", where="lives.jsonl, line 3, field said_on", fix="write 2023-05-20"))
    lives.jsonl, line 3, field said_on: date is not a date. Fix: write 2023-05-20
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        self.what, self.where, self.fix = map(hide, (what, where, fix))
        text = f"{self.where}: {self.what}" if where else self.what
        super().__init__(f"{text}. Fix: {self.fix}" if fix else text)


class MissingFiles(MemlabError):
    """The files of a model are not on this machine and could not be fetched; a plan goes on without them."""


class Faults(MemlabError):
    """Several faults found in one pass, shown together."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = [hide(fault) for fault in faults]
        lines = "\n".join(f"  * {fault}" for fault in self.faults)
        count = f"{len(self.faults)} fault" + ("s" if len(self.faults) != 1 else "")
        super().__init__(f"{count}:\n{lines}")


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts names with numbers as people count.

    >>> sorted(["life-10", "life-2"], key=natural_order)
    ['life-2', 'life-10']
    """
    return [(int(part), "") if part.isdecimal() and len(part) < 20 else (-1, part) for part in re.split(r"(\d+)", name)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, and list the known ones when there are few.

    >>> did_you_mean("colbrt", ["colbert", "bm25"])
    "did you mean 'colbert'? (known: bm25, colbert)"
    >>> did_you_mean("xyz", ["colbert", "bm25"])
    'known: bm25, colbert'
    """
    options = sorted(set(known), key=natural_order)
    close = get_close_matches(name, options, n=1)
    listed = "known: " + ", ".join(options[:30]) + (", ..." if len(options) > 30 else "")
    return f"did you mean '{close[0]}'? ({listed})" if close else listed


def error_message(error: Exception) -> str:
    """Return one line: the message of a MemlabError, or the message of another exception after its name."""
    return str(error) if isinstance(error, MemlabError) else f"{type(error).__name__}: {error}"
