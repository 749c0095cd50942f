"""The calendar as people speak of it: names, spelt numbers, and steps in days, weeks, months and years.

A week runs from Monday to Sunday, a weekend is Saturday and Sunday.
"""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Sequence
from datetime import date, timedelta

Window = tuple[date, date]
"""First and last day, both included."""

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NUMBERS = {"a couple of": 2, "couple of": 2, "a": 1, "an": 1} | {word: n for n, word in enumerate((
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1)}
FEW = (2, 5)
"""What "a few" and "several" stand for, at least and at most."""

_DAYS = {"day": 1, "week": 7, "weekend": 7}


def number(word: str) -> tuple[int, int]:
    """Read a number in digits or words, as the least and the most that it can mean.

    >>> number("Three"), number("a few")
    ((3, 3), (2, 5))
    """
    word = word.lower()
    if word.endswith(("few", "several")):
        return FEW
    n = int(word) if word.isdecimal() else NUMBERS[word]
    return n, n


def back(day: date, n: int, unit: str) -> date:
    """Go n units back (forward if n < 0); in months and years to the same day of the month, or its last.

    >>> back(date(2024, 3, 31), 1, "month")
    datetime.date(2024, 2, 29)
    """
    unit = unit.removesuffix("s")
    if unit in _DAYS:
        return day - timedelta(days=n * _DAYS[unit])
    months = day.year * 12 + day.month - 1 - n * (12 if unit == "year" else 1)
    first = date(months // 12, months % 12 + 1, 1)
    return first.replace(day=min(day.day, last_day(first).day))


def begin(day: date, unit: str) -> date:
    """Return the first day of the day, week, month or year that a day lies in."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return {"day": day, "month": day.replace(day=1), "year": day.replace(month=1, day=1)}[unit]


def unit_before(day: date, unit: str) -> Window:
    """Return the calendar unit before that of a day; of weekends the last that was over."""
    if unit == "weekend":
        sunday = weekday_before(day, "Sunday")
        return sunday - timedelta(days=1), sunday
    end = begin(day, unit) - timedelta(days=1)
    return begin(end, unit), end


def weekday_number(name: str) -> int:
    """Return 0 for Monday to 6 for Sunday; the first three letters tell.

    >>> weekday_number("tues"), weekday_number("Sunday")
    (1, 6)
    """
    return next(n for n, full in enumerate(WEEKDAYS) if full.startswith(name[:3].capitalize()))


def month_number(name: str) -> int:
    """Return 1 for January to 12 for December; the first three letters tell.

    >>> month_number("sept"), month_number("May")
    (9, 5)
    """
    return next(n for n, full in enumerate(MONTHS, 1) if full.startswith(name[:3].capitalize()))


def weekday_before(day: date, name: str) -> date:
    """Return the latest Monday (Tuesday, ...) before a day."""
    return day - timedelta(days=(day.weekday() - weekday_number(name) - 1) % 7 + 1)


def last_day(first: date) -> date:
    """Return the last day of the month that a day lies in."""
    return first.replace(day=monthrange(first.year, first.month)[1])


def pick(options: Sequence[Window], day: date, how: str) -> Window | None:
    """Choose one of several windows in the order of time, seen from a day; None where none fits.

    ``how`` is last (the latest that was over), past (the latest that had begun), future (the first that is not over),
    next (the first that begins later) or nearest (by its first day; of two equally near the earlier).

    >>> fridays = [(date(2023, 5, n), date(2023, 5, n)) for n in (12, 19, 26)]
    >>> [pick(fridays, date(2023, 5, 19), how)[0].day for how in ("last", "past", "future", "next")]
    [12, 19, 19, 26]
    """
    if how == "nearest":
        return min(options, key=lambda w: (abs(w[0] - day), w[0]), default=None)
    if how in ("last", "past"):
        return max((w for w in options if (w[1] < day if how == "last" else w[0] <= day)), default=None)
    return min((w for w in options if (w[0] > day if how == "next" else w[1] >= day)), default=None)
