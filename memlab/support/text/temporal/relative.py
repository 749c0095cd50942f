"""Meaning of expressions relative to the moment of speaking: yesterday, two weeks ago, next month, for four years."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import time, timedelta

from memlab.support.text.temporal import calendar
from memlab.support.text.temporal.context import MatchContext, Span, one_day, span, tense

_WHOLE = {"hour": (60, "minute"), "night": (1, "day"), "week": (7, "day"), "fortnight": (14, "day"),
          "decade": (10, "year")}
_HALVES = {"hour": (60, "minute"), "week": (7, "day"), "month": (30, "day"), "year": (12, "month"),
           "decade": (10, "year")}
"""A unit in a smaller one, of which it is a whole number, or has half a one."""
_PERFECT = re.compile(r"\b(?:have|has|haven't|hasn't|been)\b|'ve\b", re.IGNORECASE)


def _quantity(context: MatchContext) -> tuple[int, int, str]:
    """Return the least, the most and the unit of "a few weeks", in minutes, days, months or years; halves counted."""
    few, many = calendar.number(context["n"] or "1")
    unit, half = context["u"], context["half"] or context["half2"]
    size, base = (_HALVES if half else _WHOLE).get(unit, (0 if half else 1, unit))
    if half:
        n = size * (0 if half.startswith("half") else few) + size // 2
        return n, n, base
    return few * size, many * size, base


def _distance(context: MatchContext, few: int, many: int, unit: str, sign: int) -> Span | None:
    """Go a quantity back (sign 1) or ahead (-1) from the moment of speaking, as precisely as its unit says."""
    if unit == "minute":
        if few != many or context.anchor.time() == time.min:  # a date alone: the time of day is not known
            return None
        moment = context.anchor - timedelta(minutes=sign * few)
        return Span(moment, moment, "minute")
    if unit == "weekend" or not many:
        return None
    days = [calendar.back(context.day, sign * count, unit) for count in (few, many)]
    return span(calendar.window_between(*days), unit)


def ago(context: MatchContext) -> Span | None:
    """Return the day or time two weeks, a few days, half a year back."""
    few, many, unit = _quantity(context)
    if context["u"] == "weekend":
        start = calendar.unit_before(context.day, "weekend")[0]
        return Span(calendar.back(start, many - 1, "week"), calendar.back(start, few - 1, "week") + timedelta(days=1))
    result = _distance(context, few, many, unit, 1)
    return replace(result, unit="month") if result and context["u"] == "month" else result  # 1.5 months ago: no day


def ahead(context: MatchContext) -> Span | None:
    """Return the day or time three days ahead: "three days from now", and "in three days" of what is to come."""
    few, many, unit = _quantity(context)
    upto = context.match.string[: context.match.end()]  # in "reading it in two weeks is a feat" the "is" says nothing
    before = tense(upto, *context.match.span())
    sure = context["now"] or (before in ("future", "is") and (unit != "minute" or context.is_personal()))
    return _distance(context, few, many, unit, -1) if sure else None


def from_day(context: MatchContext) -> Span | None:
    """Return the day a week from today, tomorrow or Friday."""
    few, many, unit = _quantity(context)
    start = calendar.pick_weekday(context["wd"], context.day, "next") if context["wd"] else context.day + timedelta(
        days=context["from"] == "tomorrow")
    return Span(calendar.back(start, -few, unit), calendar.back(start, -many, unit)) if unit == "day" else None


def duration(context: MatchContext) -> Span | None:
    """Return the last or the next N units, or those through which something has lasted."""
    few, many, unit = _quantity(context)
    if few != many or unit in ("minute", "weekend") or (context["how"] == "next" and context.tense() == "past"):
        return None  # "and the next week we left" counts from another day
    if context["for"] and not context["now"] and not _PERFECT.search(
            context.match.string[: context.match.start()][-60:]):
        return None
    sign = -1 if context["how"] in ("next", "coming", "upcoming", "following") else 1
    return span(calendar.window_between(context.day, calendar.back(context.day, sign * few, unit)), unit)


def relative_day(context: MatchContext) -> Span | None:
    """Return yesterday, today, tomorrow, the day before or after, or last night."""
    words = context["w"]
    days = (-2 if "before" in words else -1 if words.startswith(("yesterday", "last")) else
            2 if "after t" in words else 1 if "tomorrow" in words else 0)
    return span(one_day(context.day + timedelta(days=days)))


def unit(context: MatchContext) -> Span | None:
    """Return last, this or next week, weekend, month or year, or the one before or after that."""
    unit, how = context["u"], context["how"]
    if context["time"]:  # this time last year: as precisely as a month
        then = calendar.back(context.day, -1 if how == "next" else 1, unit)
        return span(one_day(then), "month" if unit == "year" else "day")
    steps = {"before": -2, "after": 2}.get(context["twice"].split(" ")[0]) or (
        0 if how == "this" or not how else -1 if how in ("last", "this past", "past") else 1)
    if unit == "weekend":
        return _weekend(context, steps)
    return span(calendar.calendar_unit(context.day, unit, steps), unit if unit in ("month", "year") else "day")


def _weekend(context: MatchContext, steps: int) -> Span | None:
    saturdays = [calendar.begin(context.day, "week") + timedelta(days=n) for n in (-9, -2, 5, 12)]
    weekends = [(saturday, saturday + timedelta(days=1)) for saturday in saturdays]
    if not steps:
        return span(context.choose(weekends))
    start = calendar.pick(weekends, context.day, "last" if steps < 0 else "future")
    weeks = steps + 1 if steps < 0 else steps
    return Span(calendar.back(start[0], -weeks, "week"), calendar.back(start[1], -weeks, "week")) if start else None


def shift(window: calendar.Window, match: re.Match[str]) -> calendar.Window:
    """Count from a window: two weeks before it, the day after, the Monday before.

    ``match`` has the groups ``n`` and ``u``, or ``named`` (a unit or weekday), and may have ``way`` (before or after).
    """
    groups = {name: (value or "").lower() for name, value in match.groupdict().items()}
    sign = -1 if groups.get("way") == "after" else 1
    if groups["n"]:
        few, many = calendar.number(groups["n"])
        return calendar.window_between(*(calendar.back(window[0], sign * count, groups["u"]) for count in (few, many)))
    name = {"night": "day"}.get(groups["named"], groups["named"])
    if name.capitalize() in calendar.WEEKDAYS:
        return (day := calendar.pick_weekday(name, window[0], "last")), day
    if sign > 0:
        return calendar.unit_before(window[0], name)
    if name == "weekend":
        saturday = window[1] + timedelta(days=(4 - window[1].weekday()) % 7 + 1)
        return saturday, saturday + timedelta(days=1)
    return calendar.calendar_unit(window[1], name, 1)
