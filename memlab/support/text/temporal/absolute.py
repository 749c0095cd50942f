"""Meaning of expressions by the calendar: weekdays, days of a month, months, years, seasons, holidays."""

from __future__ import annotations

from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, date, timedelta

from memlab.support.text.temporal import calendar
from memlab.support.text.temporal.context import MatchContext, Span, one_day, span
from memlab.support.text.temporal.holidays import date_of_holiday

_STEPS = {"last": -1, "this": 0, "next": 1}
_NTH = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "last": -1}
_FAR = timedelta(days=300)
"""People name the year of a day that lies further away than this."""


def _around(make: Callable[[int], calendar.Window | None], year: int, years: int = 2) -> list[calendar.Window | None]:
    """Return the occurrences of a yearly window, from some years back to as many ahead."""
    return [make(y) for y in range(max(year - years, MINYEAR), min(year + years, MAXYEAR) + 1)]


def _on(year: int, month: int, day: int) -> calendar.Window | None:
    try:
        return one_day(date(year, month, day))
    except ValueError:  # 31 June, or 29 February of a common year
        return None


def weekday(context: MatchContext) -> Span | None:
    """Return last Friday, Friday of last week, the Friday before last, or the Friday that the tense indicates."""
    name, day = context["wd"], context.day
    if context["week"]:  # Tuesday of last week
        monday = calendar.begin(day, "week")
        return span(one_day(monday + timedelta(days=calendar.weekday_number(name) + 7 * _STEPS[context["week"]])))
    if context["twice"] or context["n"]:  # the Friday before last; a week ago Friday
        sign = -1 if context["twice"].startswith("after") else 1
        start = calendar.pick_weekday(name, day, "next" if sign < 0 else "last")
        return span(one_day(calendar.back(start, sign * calendar.number(context["n"] or "1")[0], "week")))
    how = context.occurrence()
    if how == "future" and context["how"] != "this":
        how = "next"  # on the day itself one says "today"
    return span(one_day(calendar.pick_weekday(name, day, how))) if how else None


def in_month(context: MatchContext) -> Span | None:
    """Return a day of a month, with or without a year, or a few days on end."""
    month, first = calendar.month_number(context["m"]), int(context["d"])
    last = int(context["d2"] or first)
    if context["y"]:
        start, end = (_on(int(context["y"]), month, d) for d in (first, last))
        return Span(start[0], end[0]) if start and end and start <= end else None
    chosen = _nearby(context, month, first)
    return Span(chosen[0], chosen[0] + timedelta(days=max(0, last - first))) if chosen else None


def _nearby(context: MatchContext, month: int, day: int) -> calendar.Window | None:
    """Choose the year of a day by the tense, but none so far away that people would name it."""
    years = 8 if (month, day) == (2, 29) else 2  # 1900 and 2100 are no leap years
    return context.choose(_around(lambda year: _on(year, month, day), context.day.year, years), "nearest", _FAR)


def numeric(context: MatchContext) -> Span | None:
    """Return a date in numbers: year first, or month, day and year as in the United States, or day before month."""
    month, day = int(context["mn"]), int(context["d"])
    if month > 12 and context["y"] and not context["iso"]:
        month, day = day, month
    if not 1 <= month <= 12:
        return None
    if context["y"]:
        year = int(context["y"])
        return span(_on(year + (2000 if year < 100 else 0), month, day))
    return span(_nearby(context, month, day))


def day_of_month(context: MatchContext) -> Span | None:
    """Return the 15th of last month, or the 15th that the tense indicates."""
    first, how = context.day.replace(day=1), context["how"]
    starts = [calendar.back(first, -n, "month") for n in ([_STEPS[how]] if how else (-2, -1, 0, 1, 2))]
    days = [_on(start.year, start.month, int(context["d"])) for start in starts]
    return span(days[0] if how else context.choose(days))


def month(context: MatchContext) -> Span | None:
    """Return a month, or several on end, with its year or the one that the tense indicates."""
    first = calendar.month_number(context["m"])
    n = (calendar.month_number(context["m2"]) - first) % 12 + 1 if context["m2"] else 1
    if context["y"]:
        return span(calendar.months(date(int(context["y"]), first, 1), 1), "month")
    if context.is_general():
        return None
    chosen = context.choose(_around(lambda year: calendar.months(date(year, first, 1), 1), context.day.year))
    return span(chosen and calendar.months(chosen[0], n), "month")


def nth_of_month(context: MatchContext) -> Span | None:
    """Return the first Sunday, or the last weekend, of a month."""
    weekend = context["wd"].startswith("weekend")
    day, n, how = 5 if weekend else calendar.weekday_number(context["wd"]), _NTH[context["nth"]], context["how"]
    if how:
        start = calendar.back(context.day.replace(day=1), -_STEPS[how], "month")
        chosen = one_day(calendar.nth_weekday(start.year, start.month, day, n))
    else:
        def of_year(year: int) -> calendar.Window | None:
            return one_day(calendar.nth_weekday(year, calendar.month_number(context["m"]), day, n))

        chosen = of_year(int(context["y"])) if context["y"] else context.choose(
            _around(of_year, context.day.year), "nearest")
    return Span(chosen[0], chosen[0] + timedelta(days=weekend)) if chosen else None


def year(context: MatchContext) -> Span | None:
    """Return a year."""
    return Span(date(int(context["y"]), 1, 1), date(int(context["y"]), 12, 31), "year")


def decade(context: MatchContext) -> Span | None:
    """Return a decade of the last century, if something was then."""
    if context.tense() != "past":  # "in the 80s" may be a temperature
        return None
    first = 1900 + int(context["dec"])
    return Span(date(first, 1, 1), date(first + 9, 12, 31), "year")


def season(context: MatchContext) -> Span | None:
    """Return a season, with its year or the one that the tense indicates."""
    if context["y"]:
        return span(calendar.season(context["s"], int(context["y"])), "month")
    if context.is_general():
        return None
    return span(context.choose(_around(lambda year: calendar.season(context["s"], year), context.day.year)), "month")


def holiday(context: MatchContext) -> Span | None:
    """Return a holiday, with its year or the one that the tense indicates."""
    if context["y"]:
        return span(one_day(date_of_holiday(context["f"], int(context["y"]))))
    return span(context.choose(_around(lambda year: one_day(date_of_holiday(context["f"], year)), context.day.year)))
