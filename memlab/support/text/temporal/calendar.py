"""Calendar arithmetic of everyday language: names, number words, steps in days, weeks, months and years.

A week runs from Monday to Sunday; a weekend is Saturday and Sunday.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, timedelta

from dateutil.relativedelta import relativedelta, weekdays

Window = tuple[date, date]
"""First and last day, both included."""

MONTHS = ("January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
          "November", "December")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NUMBERS = {"a couple of": 2, "couple of": 2, "a": 1, "an": 1} | {word: n for n, word in enumerate((
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), 1)}
FEW = (2, 5)
"""Least and most that "a few" and "several" stand for."""

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month in which a northern season of three whole months begins."""


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


def window_between(one: date, other: date) -> Window:
    """Return the window between two days, the earlier one first."""
    return (one, other) if one <= other else (other, one)


def weekday_number(name: str) -> int:
    """Return 0 for Monday to 6 for Sunday; the first three letters decide.

    >>> weekday_number("tues"), weekday_number("Sunday")
    (1, 6)
    """
    return next(n for n, full in enumerate(WEEKDAYS) if full.startswith(name[:3].capitalize()))


def month_number(name: str) -> int:
    """Return 1 for January to 12 for December; the first three letters decide.

    >>> month_number("sept"), month_number("May")
    (9, 5)
    """
    return next(n for n, full in enumerate(MONTHS, 1) if full.startswith(name[:3].capitalize()))


def back(day: date, n: int, unit: str) -> date:
    """Go n units back (forward if n < 0); in months and years to the same day of the month, or its last.

    >>> back(date(2024, 3, 31), 1, "month")
    datetime.date(2024, 2, 29)
    """
    return day - relativedelta(**{"weeks" if unit == "weekend" else f"{unit}s": n})


def begin(day: date, unit: str) -> date:
    """Return the first day of the day, week, month or year that a day lies in."""
    if unit == "week":
        return day - timedelta(days=day.weekday())
    return {"day": day, "month": day.replace(day=1), "year": day.replace(month=1, day=1)}[unit]


def calendar_unit(day: date, unit: str, steps: int) -> Window:
    """Return the day, week, month or year that lies ``steps`` after the one of a day (before it if negative)."""
    first = back(begin(day, unit), -steps, unit)
    return first, back(first, -1, unit) - timedelta(days=1)


def unit_before(day: date, unit: str) -> Window:
    """Return the calendar unit before that of a day; of weekends the latest that was over."""
    if unit == "weekend":
        sunday = pick_weekday("Sunday", day, "last")
        return sunday - timedelta(days=1), sunday
    return calendar_unit(day, unit, -1)


def pick_weekday(name: str, day: date, how: str) -> date:
    """Return the Monday (Tuesday, ...) that ``pick`` would choose.

    >>> [pick_weekday("Fri", date(2023, 5, 19), how).day for how in ("last", "past", "future", "next")]
    [12, 19, 19, 26]
    """
    step = -1 if how in ("last", "past") else 1
    start = day + timedelta(days=step * (how in ("last", "next")))
    return start + relativedelta(weekday=weekdays[weekday_number(name)](step))


def nth_weekday(year: int, month: int, weekday: int, n: int) -> date | None:
    """Return the n-th Monday (0, ... Sunday 6) of a month, the last for n = -1; None where a month has no fifth."""
    day: date = date(year, month, 1) + relativedelta(day=31 if n < 0 else 1, weekday=weekdays[weekday](n))
    return day if day.month == month else None


def months(first: date, n: int) -> Window:
    """Return the first and last day of n whole months, the first of which begins on a day."""
    return first, first + relativedelta(months=n - 1, day=31)


def season(name: str, year: int) -> Window:
    """Return the first and last day of a season that begins in a year; winter runs into the next one."""
    return months(date(year, SEASONS[name], 1), 3)


def pick(options: Iterable[Window], day: date, how: str) -> Window | None:
    """Choose one of several windows, seen from a day; None where none fits.

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
