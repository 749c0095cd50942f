"""Holidays and seasons as people name them (United States, northern hemisphere), and when they fall in a year."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta

from memlab.text.temporal.calendar import Window, last_day


def easter(year: int) -> date:
    """Return Easter Sunday of the Gregorian calendar (the anonymous computus of Meeus, Jones and Butcher).

    >>> easter(2023), easter(2024)
    (datetime.date(2023, 4, 9), datetime.date(2024, 3, 31))
    """
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    h = (19 * a + b - d - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    i, k = divmod(c, 4)
    to_sunday = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * to_sunday) // 451
    month, day = divmod(h + to_sunday - 7 * m + 114, 31)
    return date(year, month, day + 1)


def nth(year: int, month: int, weekday: int, n: int) -> date | None:
    """Return the n-th Monday (0, ... Sunday 6) of a month, the last for n = -1; None where a month has no fifth."""
    first = date(year, month, 1)
    days = [first + timedelta(days=k) for k in range(last_day(first).day)]
    named = [d for d in days if d.weekday() == weekday]
    return named[n - 1 if n > 0 else n] if n <= len(named) else None


def _fixed(month: int, day: int) -> Callable[[int], date]:
    return lambda year: date(year, month, day)


def _nth(month: int, weekday: int, n: int, later: int = 0) -> Callable[[int], date]:
    return lambda year: (nth(year, month, weekday, n) or date(year, month, 1)) + timedelta(days=later)


def _easter(later: int) -> Callable[[int], date]:
    return lambda year: easter(year) + timedelta(days=later)


FEASTS: tuple[tuple[str, Callable[[int], date]], ...] = (
    (r"christmas eve", _fixed(12, 24)),
    (r"(?:christmas|xmas)(?: day)?", _fixed(12, 25)),
    (r"boxing day", _fixed(12, 26)),
    (r"new year'?s eve", _fixed(12, 31)),
    (r"new year'?s(?: day)?", _fixed(1, 1)),
    (r"valentine'?s(?: day)?", _fixed(2, 14)),
    (r"st\.? patrick'?s day", _fixed(3, 17)),
    (r"april fools?'?s? day", _fixed(4, 1)),
    (r"earth day", _fixed(4, 22)),
    (r"cinco de mayo", _fixed(5, 5)),
    (r"juneteenth", _fixed(6, 19)),
    (r"(?:the )?(?:4th|fourth) of july|independence day", _fixed(7, 4)),
    (r"halloween", _fixed(10, 31)),
    (r"veterans'? day", _fixed(11, 11)),
    (r"(?:mlk|martin luther king)(?: jr\.?)? day", _nth(1, 0, 3)),
    (r"president'?s'? day", _nth(2, 0, 3)),
    (r"mother'?s'? day", _nth(5, 6, 2)),
    (r"memorial day", _nth(5, 0, -1)),
    (r"father'?s'? day", _nth(6, 6, 3)),
    (r"labor day", _nth(9, 0, 1)),
    (r"columbus day", _nth(10, 0, 2)),
    (r"thanksgiving(?: day)?", _nth(11, 3, 4)),
    (r"black friday", _nth(11, 3, 4, later=1)),
    (r"cyber monday", _nth(11, 3, 4, later=4)),
    (r"ash wednesday", _easter(-46)),
    (r"palm sunday", _easter(-7)),
    (r"maundy thursday", _easter(-3)),
    (r"good friday", _easter(-2)),
    (r"easter monday", _easter(1)),
    (r"easter(?: sunday)?", _easter(0)),
)
"""Holidays: how they are written (a regular expression, any case), and their day in a year."""

SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month in which a season of three whole months begins."""


def season_of(name: str, year: int) -> Window:
    """Return the first and last day of a season that begins in a year; winter runs into the next one."""
    month = SEASONS[name]
    last = date(year + (month == 12), (month + 1) % 12 + 1, 1)
    return date(year, month, 1), last_day(last)
