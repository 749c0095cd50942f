"""Dates at the beginning of WhatsApp's lines, and the order of day and month that a file uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

_LINE = re.compile(
    r"[\u200e\u200f\u202a\ufeff]*(?P<bracket>\[)?"
    r"([0-9]{1,4})(?P<separator>[./-])([0-9]{1,2})(?P=separator)([0-9]{1,4})(?:,|\sklo)?\s+"
    r"(?P<hour>[0-9]{1,2})[:.](?P<minute>[0-9]{2})(?:[:.](?P<second>[0-9]{2}))?"
    r"(?:\s?(?P<half>[AaPp])\.?\s?[Mm]\.?)?(?(bracket)\]\s?|\s-\s)(?P<text>.*)", re.DOTALL)


class DateOrder(Enum):
    """Order of the numbers of a date; the values are what the user reads."""

    DAY_FIRST = "day/month/year"
    MONTH_FIRST = "month/day/year"
    YEAR_FIRST = "year/month/day"


class WhatsAppLine(NamedTuple):
    """A line that begins with a date.

    numbers: the three numbers of the date as they stand. time: hour, minute, second. half: "a", "p", or "" for 24
    hours. raw: the whole line. text: the line after its date.
    """

    numbers: tuple[str, str, str]
    separator: str
    time: tuple[int, int, int]
    half: str
    bracketed: bool
    raw: str
    text: str


def split_line(raw: str) -> WhatsAppLine | None:
    """Return the parts of a line; None if it does not begin with a date.

    >>> split_line("[31/12/23, 9:15:04 PM] Ann: Hi").time, split_line("31.12.2023, 21:15 - Ann: Hi").text
    ((9, 15, 4), 'Ann: Hi')
    """
    match = _LINE.fullmatch(raw)
    if not match:
        return None
    time = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    return WhatsAppLine((match[2], match[4], match[5]), match["separator"], time, (match["half"] or "").lower(),
                        match["bracket"] is not None, raw, match["text"])


def moment(line: WhatsAppLine, order: DateOrder) -> datetime | None:
    """Return the moment of a line read in an order; None if there is no such day or time."""
    first, second, third = map(int, line.numbers)
    year, month, day = {DateOrder.DAY_FIRST: (third, second, first), DateOrder.MONTH_FIRST: (third, first, second),
                        DateOrder.YEAR_FIRST: (first, second, third)}[order]
    hour, minute, seconds = line.time
    if line.half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if line.half == "p" else 0)
    try:
        return datetime(year + 2000 if year < 100 else year, month, day, hour, minute, seconds)
    except ValueError:
        return None


def date_order(lines: Iterable[WhatsAppLine]) -> tuple[DateOrder, str]:
    """Return the order of a file's dates, and the reason in words.

    Impossible days decide (there is no month 13), then the order of time (messages are sorted), then the style: with
    am and pm month/day is assumed, else day/month.
    """
    listed = list(lines)
    if all(len(line.numbers[0]) == 4 for line in listed):
        return DateOrder.YEAR_FIRST, "since the year stands first"
    orders = (DateOrder.DAY_FIRST, DateOrder.MONTH_FIRST)
    moments = {order: [moment(line, order) for line in listed] for order in orders}
    impossible = {order: moments[order].count(None) for order in orders}
    best = min(orders, key=lambda order: impossible[order])
    if len(set(impossible.values())) > 1:
        return best, "since the other order gives days that do not exist"
    steps_back = {order: sum(b < a for a, b in pairwise(m for m in moments[order] if m)) for order in orders}
    best = min(orders, key=lambda order: steps_back[order])
    if len(set(steps_back.values())) > 1:
        return best, "since the other order would put messages before earlier ones"
    american = any(line.half for line in listed) and listed[0].separator == "/"
    return (orders[american], "assumed from the style, since the file allows both orders; --dates changes it")
