"""The date and time of a line, in the forms that phones write.

A date is three fields between marks (``5/3/2024``, ``5. 3. 24.``, ``2024-03-05``, ``2024年3月5日``), or has the name of
a month (``5. Mär 2024``, ``Mar 5, 2024``). A time has 24 hours, or 12 and a word for the part of the day before or
behind it; it follows the date, or stands before it as in Vietnamese. All repetitions are bounded.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from memlab.data.chats.whatsapp_cldr import key, known_words


class DateOrder(Enum):
    """Order of the fields of a date; the values are what the user reads."""

    DAY_FIRST = "day/month/year"
    MONTH_FIRST = "month/day/year"
    YEAR_FIRST = "year/month/day"
    YEAR_DAY_FIRST = "year/day/month"


_YEAR = r"(?:(?:R|H|令和|平成) ?)?(?:\d{4}|\d{1,2})"
"""Also of iPhones set to the Japanese or the Buddhist calendar: github.com/starkdmi/whats_json, test/data/calendars."""

_LETTERS = r"[^\s\d\[\](),،:/-][^\d\[\](),،:/]{0,24}?"
_BETWEEN = r" ?[-/.,年년月월] ?"
_AROUND_NAME = r"(?: de |[.,-] ?|ê | ta’ ?| )"
_NUMBERS = rf"(?P<first>{_YEAR}){_BETWEEN}(?P<second>\d{{1,2}}){_BETWEEN}(?P<third>{_YEAR})"
_NAME_SECOND = (rf"(?P<first>{_YEAR}){_AROUND_NAME}(?P<second>{_LETTERS}){_AROUND_NAME}(?:del? |do |di )?"
                rf"(?P<third>{_YEAR})")
_NAME_FIRST = rf"(?P<first>{_LETTERS})[.]? (?P<second>\d{{1,2}})[.,]? ?(?P<third>{_YEAR})"
_AFTER_DATE = r"(?:[日일.]| ?(?:BE|พ\.ศ\.|ค\.ศ\.|[гршҫժթ]\.|аз|ел))?"
_TIME = (rf"(?:(?P<before>{_LETTERS}) ?)?(?P<hour>\d{{1,2}})(?:[:.]| ?h ?)(?P<minute>\d{{2}})"
         rf"(?:(?:[:.]| min )(?P<seconds>\d{{2}})(?: s\b)?)?(?: ?ч\.| ?น\.|ê)?(?: ?(?P<after>{_LETTERS}))?")
_GLUE = r"[,،]? ?(?:(?:a las|kl\.|ساعت|klo|às|at|um|de|à|a) )?"
_STAMPS = tuple(stamp for date in (_NUMBERS, _NAME_SECOND, _NAME_FIRST) for stamp in (
    f"(?P<date>{date}{_AFTER_DATE}){_GLUE}{_TIME}", f"{_TIME},? (?P<date>{date}{_AFTER_DATE})"))
_WHOLE = tuple(map(re.compile, _STAMPS))
_ENDS = r"(?P<end>\]| [-–] |[:,] (?=[^:\n]{1,60}: ))"
"""What follows the date in a line; iPhones of 2016 wrote a colon, and some phones a comma."""
_BEGUN = tuple(re.compile(rf"(?P<open>\[?) ?{stamp} ?{_ENDS}") for stamp in _STAMPS)


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
    (('5', '3', '2024'), ('20', '28', ''), '9.9.9')
    """
    matches = (match for pattern in _WHOLE if (match := pattern.fullmatch(text)))
    return next(filter(None, map(_stamp, matches)), None)


def begins_with_stamp(line: str) -> tuple[Stamp, str, int] | None:
    """Return the date and time at the beginning of a plain line, what ends them, and where; None if there are none."""
    for pattern in _BEGUN:
        match = pattern.match(line)
        if match and (match["open"] == "[") == (match["end"] == "]") and (stamp := _stamp(match)):
            return stamp, match["end"], match.end()
    return None


def _stamp(match: re.Match[str]) -> Stamp | None:
    """Return what was matched; None if a word in it is no month or part of the day in any language."""
    part = match.groupdict("")
    fields = part["first"], part["second"], part["third"]
    month = next((field for field in fields[:2] if not re.search(r"\d", field)), "")
    period = part["before"] or part["after"]
    periods, months = known_words()
    if (month and key(month) not in months) or (period and key(period) not in periods):
        return None
    skeleton = re.sub(r"\d+", "9", part["date"].replace(month, "M") if month else part["date"])
    padded = any(number.startswith("0") for number in (*fields[:2], part["hour"]))
    american = period in ("AM", "PM") and "/" in part["date"] and ":" in match[0] and not padded
    return Stamp(fields, (part["hour"], part["minute"], part["seconds"]), key(month), key(period),
                 _orders(fields, month), skeleton, american)


def _orders(fields: tuple[str, str, str], month: str) -> frozenset[DateOrder]:
    first, _, third = fields
    if month:
        return frozenset({DateOrder.MONTH_FIRST if first == month else
                          DateOrder.YEAR_FIRST if _is_year(first) else DateOrder.DAY_FIRST})
    if _is_year(first):
        return frozenset({DateOrder.YEAR_FIRST, DateOrder.YEAR_DAY_FIRST})
    return frozenset({DateOrder.DAY_FIRST, DateOrder.MONTH_FIRST} | (
        set() if _is_year(third) else {DateOrder.YEAR_FIRST}))


def _is_year(field: str) -> bool:
    return len(field) > 2 or not field.isdecimal()
