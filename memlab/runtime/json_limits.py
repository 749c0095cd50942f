"""Limits of JSON from files: levels of nesting, the length of one text, and the number of values.

Parsers need memory that grows with the square of the nesting, or end in a RecursionError, and keep the whole of a text
until its end; a list of two bytes takes some seventy once it is parsed. So the bytes are counted before a parser sees
them.
"""

from __future__ import annotations

import json
import re
from typing import IO, Any

import numpy as np

from memlab.errors import MemlabError

MOST_LEVELS = 100
"""Lists and objects inside each other; chat exports and benchmarks have at most some 15."""

MOST_BYTES = 10_000_000
"""Bytes of one text as the file writes it; a novel has about 500,000."""

PIECE = 1 << 18
"""Bytes that are counted at a time."""

_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_TEXT = re.compile(rb'"[^"]*"')
_OTHER = bytes(set(range(256)) - set(b'"[]{}'))
_SHORT_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_COMMA = _OTHER.replace(b",", b"")
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


class ValueBudget:
    """The values that the JSON of one file may hold, however many texts it comes in.

    Lists, objects and commas are counted, so an empty list in a list counts as two. Readers of lines add the lines.
    """

    def __init__(self, most: int, fix: str) -> None:
        self._most, self._fix, self._spent = most, fix, 0

    def spend(self, count: int, where: str) -> None:
        """Count more values; raise MemlabError naming ``where`` once there are more than the limit."""
        self._spent += count
        if self._spent > self._most:
            raise MemlabError(f"it holds more than {self._most:,} values (lists, objects and their entries), the limit",
                              where=where, fix=self._fix)


class JsonCounter:
    """Counts the levels, the lengths of texts and, with a budget, the values of JSON that comes in pieces.

    ``where`` names it in the errors. Texts are counted by whole pieces: one is refused when it is over the limit by
    less than two pieces.
    """

    def __init__(self, where: str = "", budget: ValueBudget | None = None) -> None:
        self.where = where
        self._budget = budget
        self._other = _OTHER if budget is None else _NO_COMMA
        self._level = self._length = 0  # length: of the text in which the pieces so far end
        self._quoted = self._escaped = False

    def feed(self, piece: bytes) -> None:
        """Count one piece of any length; raise MemlabError where a limit is passed."""
        for start in range(0, len(piece), PIECE):
            self._count(piece[start:start + PIECE])

    def _count(self, piece: bytes) -> None:
        rest = piece[1:] if self._escaped else piece
        if b"\\" in rest:
            rest = _ESCAPE.sub(b"", rest)
        self._escaped = rest.endswith(b"\\")
        marks = rest.translate(None, self._other)
        within = self._quoted and b'"' not in marks
        self._length = (self._length if within else 0) + len(piece)
        if self._quoted:
            marks = b'"' + marks
        self._quoted = marks.count(b'"') % 2 == 1
        if self._quoted and self._length > MOST_BYTES:
            raise MemlabError(f"one text has more than {MOST_BYTES / 1e6:g} MB, the limit", where=self.where,
                              fix="split it into several texts, or remove it")
        marks = _TEXT.sub(b"", marks).partition(b'"')[0]
        if not marks:
            return
        if self._budget is not None:
            self._budget.spend(marks.count(b",") + marks.count(b"[") + marks.count(b"{"), self.where)
        levels = np.cumsum(_STEPS[np.frombuffer(marks, np.uint8)], dtype=np.int64) + self._level
        if levels.max() > MOST_LEVELS:
            raise MemlabError(f"lists and objects are nested more than {MOST_LEVELS} levels deep, the limit",
                              where=self.where, fix="remove what is nested so deeply; no known format needs it")
        self._level = int(levels[-1])


class CountedStream:
    """A stream whose bytes pass a JsonCounter before they are read; a parser takes it in place of a file."""

    def __init__(self, stream: IO[bytes], where: str = "", budget: ValueBudget | None = None) -> None:
        self._stream, self._counter = stream, JsonCounter(where, budget)

    def read(self, size: int = PIECE) -> bytes:
        """Return the next bytes; raise MemlabError where they pass a limit."""
        piece = self._stream.read(size)
        self._counter.feed(piece)
        return piece


def check(text: str, where: str = "", budget: ValueBudget | None = None) -> None:
    """Raise MemlabError if the JSON in a text is nested too deeply, or holds too long a text or too many values.

    >>> check("[" * 100)
    >>> check("[" * 101, "a.json")
    Traceback (most recent call last):
    ...
    memlab.errors.MemlabError: a.json: lists and objects are nested more than 100 levels deep, the limit. Fix: remove \
what is nested so deeply; no known format needs it
    """
    if len(text) <= MOST_LEVELS:
        if budget is not None:  # many lines are as short as this
            rest = _SHORT_TEXT.sub("", text)
            budget.spend(rest.count(",") + rest.count("[") + rest.count("{"), where)
        return
    counter = JsonCounter(where, budget)
    for start in range(0, len(text), PIECE):
        counter.feed(text[start:start + PIECE].encode(errors="surrogatepass"))


def loads(text: str, where: str = "", budget: ValueBudget | None = None) -> Any:
    """Return the value of JSON within the limits; raises MemlabError past them, ValueError if it is not JSON."""
    check(text, where, budget)
    return json.loads(text)
