"""Relative dates and times in what was said, resolved by rules from the moment at which it was said.

Conventions (a week runs from Monday to Sunday, a weekend is Saturday and Sunday):

* "last Friday", "this past Friday": the latest Friday before the day, never the day itself. "next Friday": the first
  one after it. "this Friday", "on Friday" and a bare "Friday": in the past tense the latest Friday not after the day;
  otherwise "this Friday" is the first one not before the day, "on Friday" (in the future tense) the first one after.
  "the Friday before last" is a week before "last Friday"; "Tuesday last week" lies in the calendar week before.
* "last week" ("month", "year") is the calendar one before, "this" the current, "next" the following. "last weekend" is
  the latest that was over, "next weekend" the one of the following week, and on a weekend the one after it; "this
  weekend" is the current or coming one, in the past tense the latest that had begun.
* "two weeks ago" is that very day; what is told in months or years is known to the month or year ("3 months ago":
  2023-02). "a few" and "several" are 2 to 5; they, "the past two weeks", "for 4 years" (in the perfect tense) and
  "seven years now" become intervals.
* "in March", "March 15", "on the 17th", a holiday or a season without a year is, in the past tense, the latest that had
  begun by the day, in the future tense the first that is not over; "last" and "next" are as for weekdays. A month, an
  ordinal day, a weekday, a season or a holiday of no tense, or of a habit ("on Fridays", "every Sunday"), is not
  resolved; "March 15" is then the nearest one, and so it is where the tense tells of one more than 300 days away ("I
  booked a flight for March 15"). Numbers are month/day/year. Seasons are three whole northern
  months (summer 2022: 2022-06/2022-08), holidays those of the United States.
* "a week before Black Friday", "the day after Christmas" count from the resolved day. "since", "until", "by" and
  "before" leave the resolved form as it is: the words still say them. "recently", "the other day" stay unresolved.

Forms (ISO 8601): day 2023-05-19, time 2023-05-19T15:00, month 2023-04, year 2021, interval of these 2023-05-08/
2023-05-14.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta

from memlab.text.temporal.calendar import back, begin, number, unit_before
from memlab.text.temporal.context import Place, Span
from memlab.text.temporal.patterns import KINDS, RULES

_CORES = "|".join(dict.fromkeys(rule.core for rule in RULES))
TRIGGER = "(?i)" + re.sub(r"\?P<\w+>", "?:", _CORES).replace(r"\b", r"(?-u:\b)").replace(r"\d", "[0-9]")
"""A line without a match names no time that could be resolved. In the dialect of polars, which searches texts by the
hundred MB a second where words are bounded as in ASCII."""

_NEEDS = tuple(dict.fromkeys(need for rule in RULES for need in rule.needs))
_LEAD = 60  # characters before an expression that are looked at for what changes it
_SHIFT = re.compile(r"\b(?:(?P<n>\d{1,2}|a|an|one|two|three|four|five|six|a couple of|a few) (?P<u>day|week|month)s?|"
                    r"the (?P<named>day|night|week|weekend)) (?P<way>before|after) (?:the )?$", re.IGNORECASE)
_CLOCK = r"(?:at|around|about|@) (?P<h>\d{1,2})(?::(?P<min>[0-5]\d))? ?(?P<half>[ap])\.?m\b\.?"
_CLOCK_AFTER = re.compile(rf",? {_CLOCK}", re.IGNORECASE)
_CLOCK_BEFORE = re.compile(rf"\b{_CLOCK} (?:on )?$", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:since|until|till|by|before|after)(?: (?:the )?(?:end|beginning|start|middle) of)? "
                   r"(?:the |last |this )?$", re.IGNORECASE)


@dataclass(frozen=True)
class Found:
    """An expression of time: where it stands, its words, its ISO form, and what it says of when something happened.

    ``day`` is the day on which something happened: a single one, not after that of speaking, and not merely where a
    stretch of time begins or ends ("since last Friday"); else None.
    """

    start: int
    end: int
    words: str
    form: str
    day: date | None


def found(text: str, said: datetime) -> list[Found]:
    """Return the expressions of time in a text that can be resolved, in order; of overlapping ones the surest.

    >>> wednesday = datetime(2023, 5, 24)
    >>> [f"{f.words} = {f.form}" for f in found("I saw it last Friday. We go to Rome next month!", wednesday)]
    ['last Friday = 2023-05-19', 'next month = 2023-06']
    >>> found("I work on Fridays, and lately I may be late.", wednesday)
    []
    """
    plain = text.replace("\u2019", "'")
    out: list[Found] = []
    at = 0
    for line in plain.split("\n"):
        for f in _in_line(line, said):
            out.append(replace(f, start=at + f.start, end=at + f.end, words=text[at + f.start : at + f.end]))
        at += len(line) + 1
    return out


def _in_line(line: str, said: datetime) -> list[Found]:
    low = line.lower()
    held = {need: any(word in low for word in KINDS.get(need, (need,))) for need in _NEEDS}
    taken: list[tuple[int, int]] = []
    out = []
    for rule in RULES:
        for match in rule.pattern.finditer(line) if all(held[need] for need in rule.needs) else ():
            start, end = match.span("w")
            if any(start < b and a < end for a, b in taken):
                continue
            try:
                span = rule.span(Place(match, said))
            except (ValueError, OverflowError):  # before the year 1, or after 9999
                span = None
            taken.append((start, end))  # what has no answer by the surer rule gets none by another
            if span is not None:
                out.append(_told(line, start, end, span, said))
    return sorted(out, key=lambda f: f.start)


def _told(line: str, start: int, end: int, span: Span, said: datetime) -> Found:
    """Add what the words around say: a shift ("the day after"), a time of day, an open end."""
    lead = line[max(0, start - _LEAD) : start]
    if span.unit == "day" and (shift := _SHIFT.search(lead)):
        start -= len(lead) - shift.start()
        span = _shifted(span, shift)
    elif span.unit == "day" and span.first == span.last:
        after, before = _CLOCK_AFTER.match(line, end), _CLOCK_BEFORE.search(lead)
        clock = after or before
        if clock and 1 <= int(clock["h"]) <= 12:
            hour = int(clock["h"]) % 12 + 12 * (clock["half"].lower() == "p")
            at = datetime.combine(span.first, time(hour, int(clock["min"] or 0)))
            start, end = (start, after.end()) if after else (start - len(lead) + clock.start(), end)
            span = Span(at, at, "minute")
    day = span.first.date() if isinstance(span.first, datetime) else span.first
    single = span.first == span.last and span.unit in ("day", "minute")
    ends = _OPEN.search(line[max(0, start - _LEAD) : start])
    return Found(start, end, line[start:end], _form(span), day if single and day <= said.date() and not ends else None)


def _shifted(span: Span, shift: re.Match[str]) -> Span:
    """Count from a resolved day: a week before it, the day after, the weekend before."""
    sign = 1 if shift["way"].lower() == "before" else -1
    if shift["n"]:
        ends = sorted(back(span.first, sign * n, shift["u"].lower()) for n in number(shift["n"]))
        return Span(ends[0], ends[1])
    unit = {"night": "day"}.get(shift["named"].lower(), shift["named"].lower())
    if sign > 0:
        return Span(*unit_before(span.first, unit))
    if unit == "weekend":
        saturday = span.last + timedelta(days=(4 - span.last.weekday()) % 7 + 1)
        return Span(saturday, saturday + timedelta(days=1))
    first = back(begin(span.last, unit), -1, unit)
    return Span(first, back(first, -1, unit) - timedelta(days=1))


def _form(span: Span) -> str:
    """Write a span in ISO 8601, as exactly as it is known."""
    ends = [d.isoformat(timespec="minutes") if isinstance(d, datetime) else
            d.isoformat()[: {"year": 4, "month": 7}.get(span.unit, 10)] for d in (span.first, span.last)]
    return "/".join(dict.fromkeys(ends))
