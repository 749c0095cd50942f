"""The time window of a question: the days that it names, read off its wording by rules.

Vocabulary, meaning of dates and arithmetic are those of ``resolve``. The policy differs: a question looks back, so the
tense is ignored, and "two weeks ago" has a margin. Each policy has its own list of patterns.

Conventions. A week runs from Monday to Sunday, a weekend is Saturday and Sunday. "Last week" ("month", "year") is the
calendar one before that of the question, "this week" runs from its Monday to the question's day, "the past week" and
"the last two weeks" end on the question's day. "Last Friday" and "on Friday" are the latest Friday before the
question's day. "Two weeks ago" is that day and half a unit (3 days, 15, 182) on either side; "a few" is 2 to 5. A
month or a day without a year is that of the only year in the question, or its latest occurrence that began by its day.
Days after the question's day are cut off; a window that begins after it is none. Dates with day, month or year take
precedence over relative ones; several make one window from the first to the last. "Since" a time and "after" a day
leave the window open to the question's day; "after" a week, month or year begins behind it. "Before", "until", "by" and
"as of" make none, unless they say how long before ("two weeks before 11 August 2023", "the Monday before ..."). Months
are written with a capital. Other words of time ("recently", "when I was young") make none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from memlab.support.text.temporal import absolute, calendar
from memlab.support.text.temporal.context import MatchContext
from memlab.support.text.temporal.patterns import COUNT, DAY, MONTH, YEAR
from memlab.support.text.temporal.relative import shift

_MARGIN = {"day": 0, "week": 3, "weekend": 1, "month": 15, "year": 182}
"""Days on either side of "two weeks ago"."""

_MONTH = rf"(?P<m>{MONTH})"
_N = rf"(?P<n>\d{{1,2}}|{COUNT})"
_UNIT = r"(?P<u>day|week|month|year)s?\b"
_IN = (r"\b(?:in|during|of|since|after|before|until|till|by|throughout|last|early|late|mid)[ -]"
       r"(?:the (?:month|year) of )?")
_ABSOLUTE = tuple((re.compile(pattern, re.IGNORECASE), meaning) for pattern, meaning in (
    (r"\b(?P<w>(?P<iso>(?P<y>(?:19|20)\d\d))[-/](?P<mn>\d{1,2})[-/](?P<d>\d{1,2}))\b", absolute.numeric),
    (rf"\b(?P<w>{DAY} (?:of )?{_MONTH},?(?: {YEAR})?)", absolute.in_month),
    (rf"\b(?P<w>{_MONTH} (?:the )?{DAY}(?:,? {YEAR})?)", absolute.in_month),
    (rf"\b(?P<w>{_MONTH},?(?: of)? {YEAR})", absolute.month),
    (rf"{_IN}(?P<w>{_MONTH})", absolute.month),
    (rf"{_IN}(?P<w>{YEAR})", absolute.year),
))
_RELATIVE = tuple(re.compile(p, re.IGNORECASE) for p in (
    rf"\b{_N} (?P<u>day|week|weekend|month|year)s? (?P<how>ago)\b",
    rf"\b(?P<how>last|past) {_N} {_UNIT}",
    rf"\b(?P<how>last|past|this) {_UNIT}",
    r"\b(?P<how>last|this past|past) (?P<u>weekend|night)\b",
    rf"\b(?P<how>last|this past|past|on) (?P<u>{'|'.join(calendar.WEEKDAYS)})\b",
    r"\b(?P<u>the day before yesterday|yesterday|today)\b",
))
_TIME = re.compile(rf"\d|{'|'.join(month[:3] for month in calendar.MONTHS)}|(?i:last|past|this|ago|day)")
"""Part of every expression of these lists: a text without it names no day."""

_DAYS_AGO = {"today": 0, "yesterday": 1, "night": 1, "the day before yesterday": 2}
_ANY_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_SINCE = re.compile(r"\bsince\b[^,.?!;]*$|\b(?P<after>after) (?:the )?$", re.IGNORECASE)
_NONE = re.compile(r"\b(?:before|until|till|prior to)\b[^,.?!;]*$|\b(?:by|as of) (?:the )?(?:early |late |mid-?)?$",
                   re.IGNORECASE)
_SHIFT = re.compile(rf"\b(?:{_N} {_UNIT}|the (?P<named>day|week|weekend|month|year|{'|'.join(calendar.WEEKDAYS)})) "
                    r"before (?:the )?$", re.IGNORECASE)


def window_of(text: str, today: date | None) -> calendar.Window | None:
    """Return the days that a question names, or None if it names none; ``today`` is the day of the question.

    >>> window_of("What did I buy last Tuesday?", date(2023, 4, 18))  # itself a Tuesday
    (datetime.date(2023, 4, 11), datetime.date(2023, 4, 11))
    >>> window_of("How many days ago did I buy it?", date(2023, 4, 18)) is None
    True
    """
    if not _TIME.search(text):
        return None
    dates = _absolute(text, today)
    if not dates and today is not None:
        dates = [(match.start(), _relative(match, today)) for pattern in _RELATIVE for match in pattern.finditer(text)]
    windows = [window for start, days in dates if (window := _qualify(text[:start], days, today))]
    if not windows:
        return None
    start, end = min(first for first, _ in windows), max(last for _, last in windows)
    if today is not None:
        end = min(end, today)
    return (start, end) if start <= end else None


@dataclass(frozen=True)
class _QuestionContext(MatchContext):
    """A date in a question: one without a year is of the question's only year, or the latest that began by its day."""

    year: str = ""

    def __getitem__(self, group: str) -> str:
        return super().__getitem__(group) or (self.year if group == "y" else "")

    def is_general(self) -> bool:
        return False

    def choose(self, options: Iterable[calendar.Window | None], *_: object) -> calendar.Window | None:
        return calendar.pick([window for window in options if window], self.day, "past")


def _absolute(text: str, today: date | None) -> list[tuple[int, calendar.Window]]:
    """Return where dates are named in a text, and their windows."""
    years = set(_ANY_YEAR.findall(text))
    year = years.pop() if len(years) == 1 else ""
    dates: list[tuple[int, calendar.Window]] = []
    taken: list[tuple[int, int]] = []
    for pattern, meaning in _ABSOLUTE:
        for match in pattern.finditer(text):
            context = _QuestionContext(match, datetime.combine(today or date.min, time.min), year)
            if any(match.start() < end and start < match.end() for start, end in taken) or not (today or context["y"]):
                continue
            span = meaning(context)
            if span is not None:
                taken.append(match.span())
                dates.append((match.start("w"), (span.first, span.last)))
    return dates


def _relative(match: re.Match[str], today: date) -> calendar.Window:
    """Return the window of an expression that counts from the question's day."""
    n, how, unit = ((match.groupdict().get(group) or "").lower() for group in ("n", "how", "u"))
    if n:
        few, many = calendar.number(n)
        first, last = calendar.back(today, many, unit), calendar.back(today, few, unit)
        margin = timedelta(days=_MARGIN[unit])
        return (first - margin, last + margin) if how == "ago" else (first, today)
    if unit in _DAYS_AGO or unit.capitalize() in calendar.WEEKDAYS:
        ago = _DAYS_AGO.get(unit)
        day = calendar.pick_weekday(unit, today, "last") if ago is None else today - timedelta(days=ago)
        return day, day
    if how == "past" and unit != "weekend":
        return calendar.back(today, 1, unit), today
    return (calendar.begin(today, unit), today) if how == "this" else calendar.unit_before(today, unit)


def _qualify(before: str, window: calendar.Window, today: date | None) -> calendar.Window | None:
    """Change a window by the words before it: since, after, before, until, two weeks before."""
    if match := _SHIFT.search(before):
        return shift(window, match)
    if _NONE.search(before):
        return None
    if match := _SINCE.search(before):
        is_long = match["after"] and window[0] < window[1] < date.max
        return (window[1] + timedelta(days=1) if is_long else window[0]), today or date.max
    return window
