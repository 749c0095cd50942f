"""Times named by the calendar: weekdays, days of a month, months, years, seasons, holidays."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta

from memlab.text.temporal.calendar import Window, back, begin, last_day, month_number, number, pick, weekday_number
from memlab.text.temporal.context import Place, Span, how_of, ours, window
from memlab.text.temporal.holidays import FEASTS, nth, season_of


def _around(make: Callable[[int], date | None], year: int) -> list[Window]:
    """Return the occurrences of a yearly day from two years back to two ahead."""
    days = (make(y) for y in range(year - 2, year + 3))
    return [(d, d) for d in days if d]


def _month(year: int, month: int) -> Window:
    first = date(year, month, 1)
    return first, last_day(first)


def _on(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:  # 31 June, or 29 February of a common year
        return None


def named_weekday(name: str, day: date, how: str) -> date | None:
    """Return the Friday (Tuesday, ...; the first three letters tell) that ``calendar.pick`` chooses."""
    at = weekday_number(name)
    monday = day - timedelta(days=day.weekday())
    days = [monday + timedelta(days=at + 7 * week) for week in (-2, -1, 0, 1, 2)]
    found = pick([(d, d) for d in days], day, how)
    return found[0] if found else None


def weekday(place: Place) -> Span | None:
    """Return last Friday, Friday of last week, the Friday before last, or the Friday that the tense tells."""
    name, day = place["wd"], place.day
    if place["week"]:  # Tuesday of last week
        steps = {"last": -1, "this": 0, "next": 1}[place["week"]]
        at = weekday_number(name)
        start = begin(day, "week") + timedelta(days=7 * steps + at)
        return Span(start, start)
    if place["twice"] or place["n"]:  # the Friday before last; a week ago Friday
        n = number(place["n"])[0] if place["n"] else 1
        sign = -1 if place["twice"].startswith("after") else 1
        start_or_none = named_weekday(name, day, "next" if sign < 0 else "last")
        moved = start_or_none - timedelta(days=7 * n * sign) if start_or_none else None
        return Span(moved, moved) if moved else None
    how = how_of(place)
    if how == "future" and place["how"] != "this":
        how = "next"  # said on the day itself, it would be "today"
    found = named_weekday(name, day, how) if how else None
    return Span(found, found) if found else None


def dated(place: Place) -> Span | None:
    """Return a day of a month, with or without a year, or a few days on end."""
    month, d = month_number(place["m"]), int(place["d"])
    last = int(place["d2"] or d)
    if place["y"]:
        first, end = _on(int(place["y"]), month, d), _on(int(place["y"]), month, last)
        return Span(first, end) if first and end and first <= end else None
    found = _yearly(place, month, d)
    return Span(found[0], found[0] + timedelta(days=max(0, last - d))) if found else None


def _yearly(place: Place, month: int, d: int) -> Window | None:
    """Choose the year of a day by the tense; but not one so far away that people would name it."""
    options = _around(lambda y: _on(y, month, d), place.day.year)
    found = pick(options, place.day, how_of(place) or "nearest")
    far = found is None or abs(found[0] - place.day) > _UNNAMED
    return pick(options, place.day, "nearest") if far else found


_UNNAMED = timedelta(days=300)


def numbers(place: Place) -> Span | None:
    """Return a date in numbers: year first, or month, day and year, as in the United States, or the other way."""
    month, d = int(place["mn"]), int(place["d"])
    if month > 12 and place["y"] and not place["iso"]:
        month, d = d, month
    if not 1 <= month <= 12:
        return None
    if place["y"]:
        year = int(place["y"])
        day = _on(year + (2000 if year < 100 else 0), month, d)
        return Span(day, day) if day else None
    return window(_yearly(place, month, d))


def day_of_month(place: Place) -> Span | None:
    """Return the 15th of last month, or the 15th that the tense tells."""
    d, how = int(place["d"]), place["how"]
    months = [back(place.day.replace(day=1), n, "month") for n in (2, 1, 0, -1, -2)]
    if how:
        months = [months[{"last": 1, "this": 2, "next": 3}[how]]]
        day = _on(months[0].year, months[0].month, d)
        return Span(day, day) if day else None
    days = [day for m in months if (day := _on(m.year, m.month, d))]
    told = how_of(place)
    return window(pick([(x, x) for x in days], place.day, told)) if told else None


def _unless_general(place: Place) -> str | None:
    """Say which occurrence is meant, but None where "it is warm in June" speaks of every June."""
    return how_of(place) if place["how"] or place.tense() != "is" or ours(place) else None


def in_month(place: Place) -> Span | None:
    """Return a month, or several on end, with its year or that which the tense tells."""
    month = month_number(place["m"])
    if place["y"]:
        return Span(*_month(int(place["y"]), month), "month")
    how = _unless_general(place)
    found = pick([_month(y, month) for y in range(place.day.year - 2, place.day.year + 3)], place.day, how) if (
        how) else None
    if found and place["m2"]:
        later = back(found[0], -((month_number(place["m2"]) - month) % 12), "month")
        found = found[0], last_day(later)
    return window(found, "month")


_NTH = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}


def nth_of_month(place: Place) -> Span | None:
    """Return the first Sunday, or the last weekend, of a month."""
    n = _NTH[place["nth"]]
    weekend = place["wd"].startswith("weekend")
    at = 5 if weekend else weekday_number(place["wd"])
    if place["how"]:
        month = back(place.day.replace(day=1), {"last": 1, "this": 0, "next": -1}[place["how"]], "month")
        start = nth(month.year, month.month, at, n)
    elif place["y"]:
        start = nth(int(place["y"]), month_number(place["m"]), at, n)
    else:
        found = pick(_around(lambda y: nth(y, month_number(place["m"]), at, n), place.day.year), place.day,
                     how_of(place) or "nearest")
        start = found[0] if found else None
    return Span(start, start + timedelta(days=weekend)) if start else None


def in_year(place: Place) -> Span | None:
    """Return a year that is named."""
    year = int(place["y"])
    return Span(date(year, 1, 1), date(year, 12, 31), "year")


def decade(place: Place) -> Span | None:
    """Return a decade of the last century, if something was then."""
    if place.tense() != "past":  # "in the 80s" may be a temperature
        return None
    year = 1900 + int(place["dec"])
    return Span(date(year, 1, 1), date(year + 9, 12, 31), "year")


def season(place: Place) -> Span | None:
    """Return a season, with its year or that which the tense tells."""
    name = place["s"]
    if place["y"]:
        return Span(*season_of(name, int(place["y"])), "month")
    how = _unless_general(place)
    found = pick([season_of(name, y) for y in range(place.day.year - 2, place.day.year + 3)], place.day, how) if (
        how) else None
    return window(found, "month")


def feast(place: Place) -> Span | None:
    """Return a holiday, with its year or that which the tense tells."""
    make = next(make for name, make in FEASTS if re.fullmatch(name, place["f"], re.IGNORECASE))
    if place["y"]:
        day = make(int(place["y"]))
        return Span(day, day)
    how = how_of(place)
    return window(pick(_around(make, place.day.year), place.day, how)) if how else None
