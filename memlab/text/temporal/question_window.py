"""The days that a question names, read off its wording by rules.

Conventions. A week runs from Monday to Sunday, a weekend is Saturday and Sunday. "Last week" ("month", "year") is the
calendar one before that of the question, "this week" runs from its Monday to the question's day, "the past week" and
"the last two weeks" end on the question's day. "Last Friday" and "on Friday" are the latest Friday before the
question's day. "Two weeks ago" is that day and half a unit (3 days, 15, 182) on either side; "a few" is 2 to 5. A
month or a day without a year is that of the only year in the question, or its latest occurrence that began by its day.
Days after it are cut off, and a window that begins after it is none. Dates named with day, month or year count more
than relative ones; several make one window from the first to the last. "Since" and "after" a time leave the window
open to the question's day; "before", "until", "by" and "as of" make none, unless they say how long before ("two weeks
before 11 August 2023", "the Monday before ..."). Months are written with a capital; words of no date ("recently",
"when I was young") make none.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import chain

from memlab.text.temporal.calendar import (
    MONTHS,
    NUMBERS,
    WEEKDAYS,
    back,
    begin,
    last_day,
    month_number,
    number,
    unit_before,
    weekday_before,
)
from memlab.text.temporal.calendar import Window as Window

_SIDE = {"day": 0, "week": 3, "weekend": 1, "month": 15, "year": 182}

_MONTH = r"(?P<month>(?-i:" + "|".join(f"{m[:3]}(?:{m[3:]})?" for m in MONTHS) + r"|Sept))\b\.?"
_DAY = r"(?P<day>\d{1,2})(?!\d)(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>(?:19|20)\d\d)\b"
_N = r"(?P<n>\d{1,2}|" + "|".join(sorted(NUMBERS, key=len, reverse=True)) + r"|(?:a |the )?few)"
_UNIT = r"(?P<unit>day|week|month|year)s?\b"
_IN = (r"\b(?:in|during|of|since|after|before|until|till|by|throughout|last|early|late|mid)[ -]"
       r"(?:the (?:month|year) of )?")
_ABSOLUTE = tuple(re.compile(p, re.IGNORECASE) for p in (
    r"\b(?P<year>(?:19|20)\d\d)[-/](?P<number>\d{1,2})[-/](?P<day>\d{1,2})\b",
    rf"\b{_DAY} (?:of )?{_MONTH},?(?: {_YEAR})?",
    rf"\b{_MONTH} (?:the )?{_DAY}(?:,? {_YEAR})?",
    rf"\b{_MONTH},?(?: of)? {_YEAR}",
    rf"{_IN}{_MONTH}",
    rf"{_IN}{_YEAR}",
))
_RELATIVE = tuple(re.compile(p, re.IGNORECASE) for p in (
    rf"\b{_N} (?P<unit>day|week|weekend|month|year)s? (?P<how>ago)\b",
    rf"\b(?P<how>last|past) {_N} {_UNIT}",
    rf"\b(?P<how>last|past|this) {_UNIT}",
    r"\b(?P<how>last|this past|past) (?P<unit>weekend|night)\b",
    rf"\b(?P<how>last|this past|past|on) (?P<unit>{'|'.join(WEEKDAYS)})\b",
    r"\b(?P<unit>the day before yesterday|yesterday|today)\b",
))
_ANY_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SINCE = re.compile(r"\bsince\b[^,.?!;]*$|\bafter (?:the )?$", re.IGNORECASE)
_NONE = re.compile(r"\b(?:before|until|till|prior to)\b[^,.?!;]*$|\b(?:by|as of) (?:the )?(?:early |late |mid-?)?$",
                   re.IGNORECASE)
_SHIFT = re.compile(rf"\b(?:{_N} {_UNIT}|the (?P<named>day|week|weekend|month|year|{'|'.join(WEEKDAYS)})) before "
                    r"(?:the )?$", re.IGNORECASE)


def window_of(text: str, asked: date | None) -> Window | None:
    """Return the days that a question names, or None where it names none; ``asked`` is the day it is asked on.

    >>> window_of("What did I buy last Tuesday?", date(2023, 4, 18))  # itself a Tuesday
    (datetime.date(2023, 4, 11), datetime.date(2023, 4, 11))
    >>> window_of("How many days ago did I buy it?", date(2023, 4, 18)) is None
    True
    """
    named, taken = _absolute(text, asked)
    if not taken and asked is not None:
        named = [w for w in (_qualified(text[: m.start()], _relative(m, asked), asked)
                             for m in chain.from_iterable(p.finditer(text) for p in _RELATIVE)) if w]
    if not named:
        return None
    start, end = min(w[0] for w in named), max(w[1] for w in named)
    if asked is not None:
        end = min(end, asked)
    return (start, end) if start <= end else None


def _absolute(text: str, asked: date | None) -> tuple[list[Window], bool]:
    """Return the windows of named dates, and whether a date is named at all."""
    found: list[Window] = []
    taken: list[tuple[int, int]] = []
    for pattern in _ABSOLUTE:
        for match in pattern.finditer(text):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            window = _named(match, asked, years.pop() if len(years := set(_ANY_YEAR.findall(text))) == 1 else None)
            if window is None:
                continue
            taken.append(match.span())
            first = min(match.start(name) for name in ("day", "month", "year")
                        if name in pattern.groupindex and match[name])
            window = _qualified(text[:first], window, asked)
            found += [window] if window else []
    return found, bool(taken)


def _named(match: re.Match[str], asked: date | None, only: str | None) -> Window | None:
    """Resolve a day, month or year; one without a year in the text's only year, or to its latest occurrence."""
    part = {"year": None, "month": None, "day": None, "number": None} | match.groupdict()
    part["year"] = part["year"] or only
    if part["month"] is None and part["number"] is None:
        year = int(str(part["year"]))
        return date(year, 1, 1), date(year, 12, 31)
    month = int(part["number"] or 0) or month_number(str(part["month"]))
    if part["year"] is None and asked is None:
        return None
    years = [int(part["year"])] if part["year"] else [asked.year, asked.year - 1] if asked else []
    for year in years:
        try:
            start = date(year, month, int(part["day"] or 1))
        except ValueError:  # 31 June, or 29 February of a common year
            continue
        if part["year"] or asked is None or start <= asked:
            return start, start if part["day"] else last_day(start)
    return None


def _relative(match: re.Match[str], asked: date) -> Window:
    """Resolve a time told from the question's day."""
    part = {"n": None, "how": ""} | match.groupdict()
    how, unit = str(part["how"]).lower(), str(part["unit"]).lower()
    if part["n"] is not None:
        few, many = number(str(part["n"]))
        first, last = back(asked, many, unit), back(asked, few, unit)
        side = timedelta(days=_SIDE[unit])
        return (first - side, last + side) if how == "ago" else (first, asked)
    if unit.capitalize() in WEEKDAYS:
        day = weekday_before(asked, unit)
        return day, day
    if unit in ("yesterday", "night", "today", "the day before yesterday"):
        day = asked - timedelta(days={"today": 0, "the day before yesterday": 2}.get(unit, 1))
        return day, day
    if how == "past" and unit != "weekend":
        return back(asked, 1, unit), asked
    return (begin(asked, unit), asked) if how == "this" else unit_before(asked, unit)


def _qualified(before: str, window: Window, asked: date | None) -> Window | None:
    """Change a window by the words before it: since, after, before, until, two weeks before."""
    shift = _SHIFT.search(before)
    if shift and shift["n"]:
        few, many = number(shift["n"])
        return back(window[0], many, shift["unit"].lower()), back(window[0], few, shift["unit"].lower())
    if shift:
        named = shift["named"].lower()
        day = weekday_before(window[0], named) if named.capitalize() in WEEKDAYS else None
        return (day, day) if day else unit_before(window[0], named)
    if _NONE.search(before):
        return None
    return (window[0], asked or date.max) if _SINCE.search(before) else window
