"""Moments of a WhatsApp chat: the order, the words and the calendar of its dates, read from all its lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from memlab.data.chats.whatsapp_patterns import DateOrder, Stamp
from memlab.data.chats.whatsapp_words import DateWords, words

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
