"""Dates of a WhatsApp chat: the date and time of a line in the forms that phones write, and their order and calendar.

A time is two or three numbers with colons or dots; what stands around it must be three fields of a date, of which one
may be the name of a month, a word for the part of the day, and words that join them, of any language. The order of the
fields, what words mean and the calendar are read from all lines of a chat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from enum import Enum
from itertools import pairwise
from typing import Any, NamedTuple

from memlab.data.chats.whatsapp_words import DateWords, clock_key, words


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

_FIELDS = {DateOrder.DAY_FIRST: "dMy", DateOrder.MONTH_FIRST: "Mdy", DateOrder.YEAR_FIRST: "yMd"}
_REASONS = {-1: "since phones write such dates in no other order",
            **dict.fromkeys((0, 1), "since the other order gives days that do not exist"),
            2: "since the other order would put messages before earlier ones",
            3: "assumed, since messages then lie closest together; --date-order changes it",
            4: "assumed from the style, since the file allows several orders; --date-order changes it"}
"""Why an order was taken, by the place of what decided among its faults."""

FIRST_YEAR = 2009
"""WhatsApp began; a reading with an earlier year is wrong."""

OTHER_CALENDARS = range(1388, 1500)
"""Years of the Persian and the Islamic calendar since 2009, which are refused."""


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
    known = words()
    name = month = part_of_day = period = ""
    for token in (token.strip(" -") for token in _TOKEN.findall(f"{before}\n{after}")):
        parts = [part for part in token.split() if clock_key(part) not in known.joiners]
        keys = map(clock_key, (token, "".join(parts)))
        word = next((key for key in keys if key in known.months or key in known.hours), "")
        if token[-1].isdecimal():
            fields.append(token)
        elif word in known.months and not month:
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


class DateReading(NamedTuple):
    """How the dates of a chat are read: the order, the reason in words, and the moment of each line.

    A moment is None if there is no such day or time.
    """

    order: DateOrder
    reason: str
    moments: list[datetime | None]


def read_moments(stamps: Sequence[Stamp], order: DateOrder | None = None) -> DateReading:
    """Read the dates of a chat in an order, or in the one that fits.

    Impossible days decide (there is no month 13), then the order of time (messages are sorted), then the shorter chat,
    then the style: the month stands first only beside slashes and AM or PM, without zeros before numbers.
    """
    hours = _meanings(stamps, lambda stamp: stamp.period, lambda clock: clock.hours)
    months = _meanings(stamps, lambda stamp: stamp.month, lambda clock: clock.months)
    dates = {(stamp.date, stamp.month) for stamp in stamps}
    orders = [order] if order else [known for known in DateOrder if any(known in stamp.orders for stamp in stamps)]
    usual = DateOrder.MONTH_FIRST if all(stamp.american for stamp in stamps) else DateOrder.DAY_FIRST
    readings = []
    for known in orders:
        days = {written: _day_of(*written, known, months) for written in dates}
        moments = [_moment(days[stamp.date, stamp.month], stamp, hours) for stamp in stamps]
        dated = [moment for moment in moments if moment]
        rare = known == DateOrder.YEAR_FIRST and len(stamps[0].date[0]) < 3
        faults = (moments.count(None), rare, sum(later < earlier for earlier, later in pairwise(dated)),
                  (max(dated) - min(dated)).days if dated else 0, known != usual)
        readings.append((faults, known, moments))
    (least, chosen, moments), *others = sorted(readings, key=lambda reading: reading[0])
    decisive = max((next(place for place, pair in enumerate(zip(least, faults)) if len({*pair}) > 1)
                    for faults, *_ in others if faults != least), default=-1)
    reason = "as given" if order else _REASONS[decisive]
    if not order and chosen == DateOrder.YEAR_FIRST and len(stamps[0].date[0]) == 4:
        reason = "since the year stands first"
    return DateReading(chosen, reason, moments)


def _meanings(stamps: Sequence[Stamp], word: Callable[[Stamp], str],
              meanings: Callable[[DateWords], dict[str, Any]]) -> dict[str, Any]:
    """Return what each word of a chat means to most of the languages that have all its words, or most of them."""
    used = {word(stamp) for stamp in stamps} - {""}
    known = [meanings(clock) for clock in words().clocks]
    most = max((sum(name in names for name in used) for names in known), default=0)
    known = [names for names in known if sum(name in names for name in used) == most]
    return {name: Counter(names[name] for names in known if name in names).most_common(1)[0][0]
            for name in sorted(used) if any(name in names for names in known)}


def _moment(day: date | None, stamp: Stamp, hours: dict[str, tuple[int, ...]]) -> datetime | None:
    hour, minute, seconds = int(stamp.time[0]), int(stamp.time[1]), int(stamp.time[2] or 0)
    if stamp.period:
        if hour > 12 or stamp.period not in hours:
            return None
        hour = hours[stamp.period][hour % 12]
    if day is None or hour > 23 or minute > 59 or seconds > 59:
        return None
    return datetime(day.year, day.month, day.day, hour, minute, seconds)


def _day_of(written: tuple[str, str, str], month: str, order: DateOrder, months: dict[str, int]) -> date | None:
    fields = dict(zip(_FIELDS[order], written))
    if month:
        fields["M"] = str(months.get(month, 0))
    if not (fields["d"].isdecimal() and fields["M"].isdecimal()):
        return None
    return _day(fields["y"], int(fields["M"]), int(fields["d"]))


def _day(year: str, month: int, day: int) -> date | None:
    """Return the day of a date of the Gregorian, the Buddhist or the Japanese calendar.

    WhatsApp began in 2009, which was 2552. So no year of one calendar is one of another.

    >>> _day("2567", 3, 5), _day("67", 3, 5), _day("R6", 3, 5), _day("24", 2, 30)
    (datetime.date(2024, 3, 5), datetime.date(2024, 3, 5), datetime.date(2024, 3, 5), None)
    """
    era = {"R": 2018, "令和": 2018, "H": 1988, "平成": 1988}.get(year.rstrip("0123456789").strip(), 0)
    number = int(re.sub(r"\D", "", year) or 0)
    if era:
        number += era
    elif len(year) == 4 and number >= 2400:
        number -= 543
    elif len(year) <= 2:
        number += 2000 if number < 52 else 1957
    try:
        return date(number, month, day) if number >= FIRST_YEAR else None
    except ValueError:
        return None
