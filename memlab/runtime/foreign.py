"""Foreign files: the limits that every one of them passes, and the one reader of their bytes, text, JSON and YAML.

A foreign file is one that memlab did not just write itself: data, chats, documents, rankings, a run folder that is
opened. It must be a plain file, since the bytes of a pipe or a device may never come or end. Parsers need memory that
grows with the square of the nesting, or end in a RecursionError, and keep the whole of a text until its end; a list of
two bytes takes some seventy once it is parsed. So the bytes of JSON are counted before a parser sees them.
"""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import IO, Any

import numpy as np
import yaml

from memlab.errors import MemlabError
from memlab.runtime.files import open_plain

MOST_LEVELS = 100
"""Lists and objects inside each other; chat exports and benchmarks have at most some 15."""

MOST_BYTES = 10_000_000
"""Bytes of one text as the file writes it; a novel has about 500,000."""

MOST_OF_JSON = 256_000_000
"""Bytes of a JSON file of a run, a report or a sweep; a comparison of a hundred arms has some ten million."""

MOST_OF_YAML = 2**20
"""Characters of a YAML file; memlab's own configurations have some ten thousand."""

MOST_OF_SESSION = 500_000
"""Lists, objects and entries of a session: three for each turn, and one more for each of speaker, offset and page."""

ESCAPED = 12
"""Bytes of a character at most where JSON escapes it."""

TIMES = 20
"""Times the packed size that a file may unpack to: JSON of conversations packs to a fifth, a bomb to a thousandth."""

AT_LEAST = 50_000_000
"""Bytes that any file may unpack to."""

BYTES_PER_VALUE = 5
"""Packed bytes for each value of JSON: LoCoMo takes 12, LongMemEval 60; a bomb takes a thousandth."""

VALUES_AT_LEAST = 2_000_000
"""Values that any packed file may hold; they take some 200 MB once they are parsed."""

DIGITS = 18
"""Digits of a whole number, so that each fits into 64 bits; Python itself refuses those of thousands of digits."""

PIECE = 1 << 18
"""Bytes that are counted at a time."""

_UNPACK = "unpack it yourself if you trust it, and give what is in it"
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_TEXT = re.compile(rb'"[^"]*"')
_OTHER = bytes(set(range(256)) - set(b'"[]{}'))
_SHORT_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NO_COMMA = _OTHER.replace(b",", b"")
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def read_bytes(path: Path, most: int, too_large: MemlabError | None = None) -> bytes:
    """Return the bytes of a plain file; of one with more than ``most``, raise ``too_large``, or OSError without it."""
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise too_large or OSError(errno.EFBIG, f"it has more than {most / 1e6:,.0f} MB, the limit", str(path))
    return content


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds; raise OSError, or ValueError if it holds none within the limits."""
    text = read_bytes(path, MOST_OF_JSON).decode()
    try:
        content = load_json(text, budget=value_budget(len(text)))
    except MemlabError as error:
        raise ValueError(error.what) from error
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    return content


def load_yaml(text: str) -> Any:
    """Return the value of YAML without aliases and tags; raise ValueError past a limit, yaml.YAMLError if it is none.

    >>> load_yaml("a: [1, x]")
    {'a': [1, 'x']}
    >>> load_yaml("a: &a [1]\\nb: *a")
    Traceback (most recent call last):
    ...
    ValueError: aliases are not allowed: a few can unfold into billions of values
    """
    if len(text) > MOST_OF_YAML:
        raise ValueError(f"more than {MOST_OF_YAML:,} characters")
    level = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not allowed: a few can unfold into billions of values")
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if level > MOST_LEVELS:
            raise ValueError(f"lists and mappings are nested more than {MOST_LEVELS} levels deep, the limit")
    return yaml.load(text, yaml.CSafeLoader)  # noqa: S506  (a safe loader, written in C)


def read_yaml(path: Path) -> Any:
    """Return the value of a file as ``load_yaml`` does; raise OSError as well."""
    return load_yaml(read_bytes(path, 4 * MOST_OF_YAML).decode("utf-8-sig"))


def whole_number(text: str) -> int | None:
    """Return the number that some ASCII digits write; None for any other text.

    >>> whole_number("042"), whole_number("-1"), whole_number("²"), whole_number("9" * 5000)
    (42, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None


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

    ``where`` names it in the errors, ``most`` is the limit of a text. Texts are counted by whole pieces: one is refused
    when it is over the limit by less than two pieces.
    """

    def __init__(self, where: str = "", budget: ValueBudget | None = None, most: int | None = None) -> None:
        self.where = where
        self._budget, self._most = budget, most or MOST_BYTES
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
        if self._quoted and self._length > self._most:
            raise MemlabError(f"one text has more than {self._most / 1e6:g} MB, the limit", where=self.where,
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


def check_json(text: str, where: str = "", budget: ValueBudget | None = None, most: int | None = None) -> None:
    """Raise MemlabError if the JSON in a text is nested too deeply, or holds too long a text or too many values.

    >>> check_json("[" * 100)
    >>> check_json("[" * 101, "a.json")
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
    counter = JsonCounter(where, budget, most)
    for start in range(0, len(text), PIECE):
        counter.feed(text[start:start + PIECE].encode(errors="surrogatepass"))


def check_session(line: str, where: str = "") -> None:
    """Raise MemlabError for the JSON of a session with too many values; what writes one and what reads it call this."""
    check_json(line, where, ValueBudget(MOST_OF_SESSION, "write it as several sessions"), ESCAPED * MOST_BYTES)


def load_json(text: str, where: str = "", budget: ValueBudget | None = None) -> Any:
    """Return the value of JSON within the limits; raises MemlabError past them, ValueError if it is not JSON."""
    check_json(text, where, budget)
    return json.loads(text)


def unpacked_limit(packed: int) -> int:
    """Return the bytes that a file of ``packed`` bytes may unpack to.

    >>> unpacked_limit(15_000_000), unpacked_limit(100)
    (300000000, 50000000)
    """
    return max(AT_LEAST, TIMES * packed)


def value_budget(packed: int) -> ValueBudget:
    """Return the budget for the values of a file of ``packed`` bytes."""
    return ValueBudget(max(VALUES_AT_LEAST, packed // BYTES_PER_VALUE), _UNPACK)


def unpacks_to_more(path: Path, packed: int) -> MemlabError:
    """Return the error for a file of ``packed`` bytes that unpacks to more than it may."""
    return MemlabError(f"its {packed / 1e6:,.1f} MB unpack to more than {unpacked_limit(packed) / 1e6:,.0f} MB, the "
                       "limit", where=str(path), fix=_UNPACK)


class BoundedStream:
    """A stream of unpacked bytes that ends in a MemlabError where ``path`` unpacks to more than it may."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        self._packed = path.stat().st_size
        self._left = unpacked_limit(self._packed)

    def __enter__(self) -> BoundedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes; raise MemlabError once there are more than the limit."""
        piece = self._stream.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(piece)
        if self._left < 0:
            raise unpacks_to_more(self._path, self._packed)
        return piece
