"""The date and time of a line: a text is matched against the patterns of CLDR by its shape, each digit replaced by 9.

A shape is matched once, however many lines of a file have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from memlab.chats.whatsapp_cldr import ORDERS, DateOrder, cldr, key

MOST_MISSES = 500
"""Shapes of one file that are none of a date; each costs a millisecond. After them, only known forms are read."""

_NUMBERS = re.compile(r"\D*(?:(?:9{1,2}|9999)(?:\D+|$)){4,6}")
"""The numbers of a date and a time: four, if the month is a word and there are no seconds, to six."""

_NINES = str.maketrans("012345678", "9" * 9)

Span = tuple[int, int]


class Stamp(NamedTuple):
    """The date and time of a line.

    date: its three fields as they stand. time: hour, minute, and second or "". month and period: their words, or "".
    orders: those that CLDR has for a date of this shape. written: date, time, and what stands between. skeleton: the
    date without lengths of numbers and names of months, which all lines of a file share.
    """

    date: tuple[str, str, str]
    time: tuple[str, str, str]
    month: str
    period: str
    orders: frozenset[DateOrder]
    written: tuple[str, str, str]
    skeleton: str


class _Shape(NamedTuple):
    date: tuple[Span, ...]
    time: tuple[Span, ...]
    month: str
    period: str
    orders: frozenset[DateOrder]
    written: tuple[Span, Span, Span]
    skeleton: str


class Stamps:
    """The reader of the dates and times of a file; it keeps the shapes that it has seen, so each is matched once."""

    def __init__(self) -> None:
        self._shapes: dict[str, _Shape | None] = {}
        self._forms: set[str] = set()  # of shapes that were dates, without lengths and words
        self._misses = 0

    def read(self, text: str) -> Stamp | None:
        """Return the date and time that a plain text is, and nothing else; None for any other text.

        >>> stamp = Stamps().read("5.3.2024 klo 20.28")
        >>> stamp.date, stamp.time, list(stamp.written)
        (('5', '3', '2024'), ('20', '28', ''), ['5.3.2024', '20.28', ' klo '])
        """
        sketch = text.translate(_NINES)
        if sketch not in self._shapes:
            if not 8 <= len(text) <= 60 or not _NUMBERS.fullmatch(sketch):
                return None
            self._shapes[sketch] = self._match(sketch)
        if (shape := self._shapes[sketch]) is None:
            return None
        first, second, third = (text[start:end] for start, end in shape.date)
        hour, minute, seconds = (text[start:end] for start, end in shape.time)
        date, clock, between = (text[start:end] for start, end in shape.written)
        return Stamp((first, second, third), (hour, minute, seconds), shape.month, shape.period, shape.orders,
                     (date, clock, between), shape.skeleton)

    def _match(self, sketch: str) -> _Shape | None:
        form = re.sub(r"[^9/:,،-]+", " ", sketch.replace("99", "9"))
        if self._misses >= MOST_MISSES and form not in self._forms:
            return None
        if shape := _shape(sketch):
            self._forms.add(form)
        else:
            self._misses += 1
        return shape


def _splits(sketch: str) -> Iterator[tuple[Span, Span]]:
    """Yield where a text may be cut in two, with a comma, a blank or a word between."""
    for mark in re.finditer(r"[,،] ?| ", sketch):
        yield (0, mark.start()), (mark.end(), len(sketch))
        if word := cldr().glue.match(sketch, mark.end()):
            yield (0, mark.start()), (word.end(), len(sketch))


def _shape(sketch: str) -> _Shape | None:
    cuts = list(_splits(sketch))
    for date_at, time_at in (*cuts, *((right, left) for left, right in cuts)):  # date first, but in Vietnamese
        if (date := _date(sketch, *date_at)) and (time := _time(sketch, *time_at)):
            skeleton = re.sub("9+", "9", sketch[slice(*date_at)].replace(date[1] or "M", "M"))
            return _Shape(date[0], time[0], key(date[1]), key(time[1]), date[2],
                          (date_at, time_at, (min(date_at[1], time_at[1]), max(date_at[0], time_at[0]))), skeleton)
    return None


def _date(sketch: str, start: int, end: int) -> tuple[tuple[Span, ...], str, frozenset[DateOrder]] | None:
    """Return the places of a date's fields, its month if that is a word, and the orders that CLDR has for it."""
    found: dict[str, tuple[tuple[Span, ...], set[DateOrder]]] = {}
    for pattern in cldr().dates:
        if match := pattern.regex.fullmatch(sketch, start, end):
            month = match[1 + pattern.letters.index("M")]
            word = "" if month.isdecimal() else month
            if not word or key(word) in cldr().months:
                found.setdefault(word, (tuple(match.span(n) for n in (1, 2, 3)), set()))[1].add(ORDERS[pattern.letters])
    if not found:
        return None
    word = min(found, key=len)
    return found[word][0], word, frozenset(found[word][1])


def _time(sketch: str, start: int, end: int) -> tuple[tuple[Span, ...], str] | None:
    """Return the places of hour, minute and second, and the word for the part of the day."""
    for pattern in cldr().times:
        if match := pattern.regex.fullmatch(sketch, start, end):
            at = {letter: match.span(n) for n, letter in enumerate(pattern.letters, start=1)}
            word = sketch[slice(*at["a"])] if "a" in at else ""
            if not word or key(word) in cldr().periods:
                return (at["h"], at["m"], at.get("s", (0, 0))), word
    return None
