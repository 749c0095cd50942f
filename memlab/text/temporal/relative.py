"""Times told from the moment of speaking: yesterday, two weeks ago, next month, in three days, for four years."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import time, timedelta

from memlab.text.temporal.absolute import named_weekday
from memlab.text.temporal.calendar import back, begin, number, pick, unit_before
from memlab.text.temporal.context import Place, Span, how_of, ours, tense, window

_WHOLE = {"hour": (60, "minute"), "night": (1, "day"), "week": (7, "day"), "fortnight": (14, "day"),
          "decade": (10, "year")}
_HALVES = {"hour": (60, "minute"), "week": (7, "day"), "month": (30, "day"), "year": (12, "month"),
           "decade": (10, "year")}
"""A unit in a smaller one, of which it is a whole number, or has half a one."""


def _quantity(place: Place) -> tuple[int, int, str]:
    """Return the least, the most and the unit of "a few weeks", in minutes, days, months or years; halves counted."""
    few, many = number(place["n"] or "1")
    unit, half = place["u"], place["half"] or place["half2"]
    size, base = _WHOLE.get(unit, (1, unit))
    if half:
        size, base = _HALVES.get(unit, (0, unit))
        whole = 0 if half.startswith("half") else few
        return (n := size * whole + size // 2), n, base
    return few * size, many * size, base


def _away(place: Place, few: int, many: int, unit: str, sign: int) -> Span | None:
    """Go a quantity back (sign 1) or ahead (-1) from the moment of speaking, as exactly as its unit says."""
    if unit == "minute":
        if few != many or place.said.time() == time.min:  # a date alone: the time of day is not known
            return None
        moment = place.said - timedelta(minutes=sign * few)
        return Span(moment, moment, "minute")
    if unit == "weekend" or not many:
        return None
    ends = sorted((back(place.day, sign * few, unit), back(place.day, sign * many, unit)))
    return Span(ends[0], ends[1], unit)


def ago(place: Place) -> Span | None:
    """Return what lies two weeks, a few days, half a year back."""
    few, many, unit = _quantity(place)
    if place["u"] == "weekend":
        start = unit_before(place.day, "weekend")[0]
        return Span(start - timedelta(days=7 * (many - 1)), start - timedelta(days=7 * (few - 1) - 1))
    span = _away(place, few, many, unit, 1)
    return replace(span, unit="month") if span and place["u"] == "month" else span  # "a month and a half ago" is no day


def ahead(place: Place) -> Span | None:
    """Return what lies three days ahead: "in three days" of what is to come, "three days from now" always."""
    few, many, unit = _quantity(place)
    upto = place.match.string[: place.match.end()]  # in "reading it in two weeks is a feat" what follows tells nothing
    before = tense(upto, *place.match.span())
    sure = place["now"] or (before in ("future", "is") and (unit != "minute" or ours(place)))
    return _away(place, few, many, unit, -1) if sure else None


def from_day(place: Place) -> Span | None:
    """Return the day a week from today, tomorrow or Friday."""
    few, many, unit = _quantity(place)
    start = named_weekday(place["wd"], place.day, "next") if place["wd"] else place.day + timedelta(
        days=place["from"] == "tomorrow")
    return Span(back(start, -few, unit), back(start, -many, unit)) if start and unit == "day" else None


def stretch(place: Place) -> Span | None:
    """Return the last or the next N units, or those through which something has lasted."""
    few, many, unit = _quantity(place)
    if few != many or unit in ("minute", "weekend") or (place["how"] == "next" and place.tense() == "past"):
        return None  # "and the next week we left" counts from another day
    if place["for"] and not place["now"] and not re.search(
            r"\b(?:have|has|haven't|hasn't|been)\b|'ve\b", place.match.string[: place.match.start()][-60:], re.I):
        return None
    ahead = place["how"] in ("next", "coming", "upcoming", "following")
    ends = sorted((place.day, back(place.day, -few if ahead else few, unit)))
    return Span(ends[0], ends[1], unit)


def relative_day(place: Place) -> Span | None:
    """Return yesterday, today, tomorrow, the day before or after, or last night."""
    words = place["w"]
    ahead = (-2 if "before" in words else -1 if words.startswith(("yesterday", "last")) else
             2 if "after t" in words else 1 if "tomorrow" in words else 0)
    day = place.day + timedelta(days=ahead)
    return Span(day, day)


def unit(place: Place) -> Span | None:
    """Return last, this or next week, weekend, month or year, or the one before or after that."""
    unit, how = place["u"], place["how"]
    if place["time"]:  # this time last year: as exactly as a month
        day = back(place.day, -1 if how == "next" else 1, unit)
        return Span(day, day, "month" if unit == "year" else "day")
    grain = unit if unit in ("month", "year") else "day"
    steps = {"before": -2, "after": 2}.get(place["twice"].split(" ")[0]) or (
        0 if how == "this" or not how else -1 if how in ("last", "this past", "past") else 1)
    if unit == "weekend":
        return _weekend(place, steps)
    start = begin(place.day, unit)
    first = back(start, -steps, unit)
    return Span(first, back(first, -1, unit) - timedelta(days=1), grain)


def _weekend(place: Place, steps: int) -> Span | None:
    saturdays = [place.day + timedelta(days=n - place.day.weekday()) for n in (-9, -2, 5, 12)]
    weekends = [(s, s + timedelta(days=1)) for s in saturdays]
    if steps:
        start = pick(weekends, place.day, "last" if steps < 0 else "future")
        move = timedelta(days=7 * (steps + 1 if steps < 0 else steps))
        return Span(start[0] + move, start[1] + move) if start else None
    how = how_of(place)
    return window(pick(weekends, place.day, how)) if how else None
