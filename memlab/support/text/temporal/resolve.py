"""Relative dates and times in what was said, resolved by rules from the moment at which it was said.

Conventions (a week runs from Monday to Sunday, a weekend is Saturday and Sunday):

* "last Friday", "this past Friday": the latest Friday before the day, never the day itself. "next Friday": the first
  one after it. "this Friday", "on Friday" and a bare "Friday": in the past tense the latest Friday not after the day;
  otherwise "this Friday" is the first one not before the day, "on Friday" (in the future tense) the first one after.
  "the Friday before last" is a week before "last Friday"; "Tuesday last week" lies in the calendar week before.
* "last week" ("month", "year") is the calendar one before, "this" the current, "next" the following. "last weekend" is
  the latest that was over, "next weekend" the one of the following week, and on a weekend the one after it; "this
  weekend" is the current or coming one, in the past tense the latest that had begun.
* "two weeks ago" is that very day; months and years ago are known to the month or year ("3 months ago": 2023-02). "a
  few" and "several" are 2 to 5; they, "the past two weeks", "for 4 years" (in the perfect tense) and "seven years now"
  become intervals.
* "in March", "March 15", "on the 17th", a holiday or a season without a year is, in the past tense, the latest that had
  begun by the day, in the future tense the first that is not over; "last" and "next" are as for weekdays. A month, an
  ordinal day, a weekday, a season or a holiday of no tense, or of a habit ("on Fridays", "every Sunday"), is not
  resolved; "March 15" is then the nearest one. It is the nearest one, too, if the tense points more than 300 days away
  ("I booked a flight for March 15"). Numbers are month/day/year. Seasons are three whole northern months (summer 2022:
  2022-06/2022-08), holidays those of the United States.
* "a week before Black Friday", "the day after Christmas" count from the resolved day. "since", "until", "by" and
  "before" leave the resolved value as it is: the words still say them. "recently", "the other day" stay unresolved.

Values (ISO 8601, as in TIMEX3): day 2023-05-19, time 2023-05-19T15:00, month 2023-04, year 2021, interval of these
2023-05-08/2023-05-14.
"""

from __future__ import annotations

import re
from bisect import bisect
from dataclasses import dataclass, replace
from datetime import date, datetime, time

from memlab.support.text.temporal.context import MatchContext, Span
from memlab.support.text.temporal.patterns import KINDS, RULES
from memlab.support.text.temporal.relative import shift

_CORES = "|".join(dict.fromkeys(rule.core for rule in RULES))
TRIGGER = "(?i)" + re.sub(r"\?P<\w+>", "?:", _CORES).replace(r"\b", r"(?-u:\b)").replace(r"\d", "[0-9]")
"""A line without a match names no time that could be resolved. In the dialect of polars, which searches hundreds of MB
per second if word boundaries are those of ASCII."""

_NEEDS = tuple(dict.fromkeys(need for rule in RULES for need in rule.needs))
_LEAD = 60  # characters before an expression in which words may change its meaning
_SHIFT = re.compile(r"\b(?:(?P<n>\d{1,2}|a|an|one|two|three|four|five|six|a couple of|a few) (?P<u>day|week|month)s?|"
                    r"the (?P<named>day|night|week|weekend)) (?P<way>before|after) (?:the )?$", re.IGNORECASE)
_CLOCK = r"(?:at|around|about|@) (?P<h>\d{1,2})(?::(?P<min>[0-5]\d))? ?(?P<half>[ap])\.?m\b\.?"
_CLOCK_AFTER = re.compile(rf",? {_CLOCK}", re.IGNORECASE)
_CLOCK_BEFORE = re.compile(rf"\b{_CLOCK} (?:on )?$", re.IGNORECASE)
_OPEN = re.compile(r"\b(?:since|until|till|by|before|after)(?: (?:the )?(?:end|beginning|start|middle) of)? "
                   r"(?:the |last |this )?$", re.IGNORECASE)


@dataclass(frozen=True)
class TimeExpression:
    """A time expression: its place in the text, its words, its ISO value, and the day on which something happened.

    ``day`` is a single day, not after that of speaking, and not merely where a period begins or ends ("since last
    Friday"); else None.
    """

    start: int
    end: int
    text: str
    value: str
    day: date | None


def find_expressions(text: str, anchor: datetime) -> list[TimeExpression]:
    """Return the time expressions in a text that can be resolved, in order; of overlapping ones the most certain.

    ``anchor`` is the moment at which the text was said.

    >>> wednesday = datetime(2023, 5, 24)
    >>> text = "I saw it last Friday. We go to Rome next month!"
    >>> [f"{one.text} = {one.value}" for one in find_expressions(text, wednesday)]
    ['last Friday = 2023-05-19', 'next month = 2023-06']
    >>> find_expressions("I work on Fridays, and lately I may be late.", wednesday)
    []
    """
    out: list[TimeExpression] = []
    offset = 0
    for line in text.replace("\u2019", "'").split("\n"):
        for one in _in_line(line, anchor):
            start, end = offset + one.start, offset + one.end
            out.append(replace(one, start=start, end=end, text=text[start:end]))
        offset += len(line) + 1
    return out


def _in_line(line: str, anchor: datetime) -> list[TimeExpression]:
    lower = line.lower()
    met = {need: any(word in lower for word in KINDS.get(need, (need,))) for need in _NEEDS}
    taken: list[tuple[int, int]] = []  # disjoint, in order
    out = []
    for rule in RULES:
        for match in rule.pattern.finditer(line) if all(met[need] for need in rule.needs) else ():
            start, end = match.span("w")
            place = bisect(taken, (start, end))
            if any(start < b and a < end for a, b in taken[max(0, place - 1): place + 1]):
                continue
            try:
                span = rule.span(MatchContext(match, anchor))
                found = [] if span is None else [_expression(line, start, end, span, anchor)]
            except (ValueError, OverflowError):  # before the year 1, or after 9999
                found = []
            taken.insert(place, (start, end))  # if the more certain rule has no answer, no other rule may give one
            out += found
    return sorted(out, key=lambda one: one.start)


def _expression(line: str, start: int, end: int, span: Span, anchor: datetime) -> TimeExpression:
    """Build the expression with the words around it: a shift ("the day after"), a time of day, an open end."""
    lead = line[max(0, start - _LEAD) : start]
    if span.unit == "day" and (shifted := _SHIFT.search(lead)):
        start -= len(lead) - shifted.start()
        span = Span(*shift((span.first, span.last), shifted))
    elif span.unit == "day" and span.first == span.last:
        after, before = _CLOCK_AFTER.match(line, end), _CLOCK_BEFORE.search(lead)
        clock = after or before
        if clock and 1 <= int(clock["h"]) <= 12:
            hour = int(clock["h"]) % 12 + 12 * (clock["half"].lower() == "p")
            moment = datetime.combine(span.first, time(hour, int(clock["min"] or 0)))
            start, end = (start, after.end()) if after else (start - len(lead) + clock.start(), end)
            span = Span(moment, moment, "minute")
    day = span.first.date() if isinstance(span.first, datetime) else span.first
    single = span.first == span.last and span.unit in ("day", "minute")
    is_open = _OPEN.search(line[max(0, start - _LEAD) : start])
    return TimeExpression(start, end, line[start:end], _value(span),
                          day if single and day <= anchor.date() and not is_open else None)


def _value(span: Span) -> str:
    """Format a span in ISO 8601, as precisely as it is known."""
    ends = [d.isoformat(timespec="minutes") if isinstance(d, datetime) else
            d.isoformat()[: {"year": 4, "month": 7}.get(span.unit, 10)] for d in (span.first, span.last)]
    return "/".join(dict.fromkeys(ends))
