"""The date and time of a line, in the forms that phones write.

A time is two or three numbers with colons or dots; what stands around it must be three fields of a date, of which one
may be the name of a month, a word for the part of the day, and words that join them, of any language.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from memlab.data.chats.whatsapp_words import clock_key, known_words, words


class DateOrder(Enum):
    """Order of the fields of a date; the values are what the user reads."""

    DAY_FIRST = "day/month/year"
    MONTH_FIRST = "month/day/year"
    YEAR_FIRST = "year/month/day"


_TIME = re.compile(r"(?<!\d)(\d{1,2})(?:[:.]| ?h ?)(\d{2})(?:(?:[:.]| min )(\d{2})(?: s\b)?)?(?!\d)")
_TOKEN = re.compile(r"(?:(?:R|H|令和|平成) ?)?\d+|[^\W\d_年月日년월일][^\d\n,،:/()\[\]年月日년월일]*")
"""A number, with the era on iPhones set to the Japanese calendar (github.com/starkdmi/whats_json, test/data/calendars),
or words; what they count stands behind numbers in Chinese, Japanese and Korean."""

_END = re.compile(r"\]| [-–] |[:,] (?=[^:\n]{1,60}: )")
"""What follows the date in a line; iPhones of 2016 wrote a colon, and some phones a comma."""


class Stamp(NamedTuple):
    """The date and time of a line.

    date: its three fields as they stand. time: hour, minute, and second or "". month and period: their words, or "".
    orders: those that are possible for the date's form. skeleton: the date without its numbers and the name of its
    month, which all lines of a file share. american: whether it is in the style of the United States.
    """

    date: tuple[str, str, str]
    time: tuple[str, str, str]
    month: str
    period: str
    orders: frozenset[DateOrder]
    skeleton: str
    american: bool


def read_stamp(text: str) -> Stamp | None:
    """Return the date and time that a plain text is, and nothing else; None for any other text.

    >>> stamp = read_stamp("5.3.2024 klo 20.28")
    >>> stamp.date, stamp.time, stamp.skeleton
    (('5', '3', '2024'), ('20', '28', ''), '9.9.9 klo')
    """
    times = sorted(_TIME.finditer(text), key=lambda match: (":" in match[0], match.start()), reverse=True)
    return next(filter(None, (_stamp(text, time) for time in times)), None)


def begins_with_stamp(line: str) -> tuple[Stamp, str, int] | None:
    """Return the date and time at the beginning of a plain line, what ends them, and where; None if there are none."""
    opened = line.startswith("[")
    for end in _END.finditer(line):
        if (end[0] == "]") == opened and (stamp := read_stamp(line[opened:end.start()])):
            return stamp, end[0], end.end()
    return None


def _stamp(text: str, time: re.Match[str]) -> Stamp | None:
    """Return the stamp whose time is a match; None if a word is no month or part of the day in any language."""
    before, after = text[:time.start()], text[time.end():]
    fields: list[str] = []
    months, periods = known_words()
    name = month = part_of_day = period = ""
    for token in (token.strip(" -") for token in _TOKEN.findall(f"{before}\n{after}")):
        parts = [part for part in token.split() if clock_key(part) not in words().joiners]
        word = next((key for key in map(clock_key, (token, "".join(parts))) if key in months or key in periods), "")
        if token[-1].isdecimal():
            fields.append(token)
        elif word in months and not month:
            month, name = word, token
            fields.append(word)
        elif word:
            period, part_of_day = word, token
        elif parts:
            return None
    if len(fields) != 3 or any(len(re.sub(r"\D", "", field)) not in (0, 1, 2, 4) for field in fields):
        return None
    written = before if re.search(r"\d", before) else after
    shape = written.replace(part_of_day, "").replace(name or "\n", "M")
    skeleton = re.sub(r"\d+", "9", shape).strip(" ,")
    padded = any(number.startswith("0") for number in (*fields[:2], time[1]))
    american = part_of_day in ("AM", "PM") and "/" in written and ":" in time[0] and not padded
    date = fields[0], fields[1], fields[2]
    return Stamp(date, (time[1], time[2], time[3] or ""), month, period, _orders(date, month), skeleton, american)


def _orders(fields: tuple[str, str, str], month: str) -> frozenset[DateOrder]:
    first, _, third = fields
    if _is_year(first) and first != month:
        return frozenset({DateOrder.YEAR_FIRST})
    if month:
        return frozenset({DateOrder.MONTH_FIRST if first == month else DateOrder.DAY_FIRST})
    return frozenset(DateOrder) - ({DateOrder.YEAR_FIRST} if _is_year(third) else set())


def _is_year(field: str) -> bool:
    return len(field) > 2 or not field.isdecimal()
