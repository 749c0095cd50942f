"""Rules for time expressions: patterns, whose group ``w`` is the expression, and the functions that resolve them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from memlab.support.text.temporal import absolute, relative
from memlab.support.text.temporal.calendar import MONTHS, NUMBERS, SEASONS, WEEKDAYS
from memlab.support.text.temporal.context import MatchContext, Span
from memlab.support.text.temporal.holidays import HOLIDAY

KINDS = {
    "near": ("yesterday", "today", "tonight", "tomorrow", "morning", "afternoon", "evening", "night"),
    "unit": ("minute", "hour", "night", "day", "week", "month", "year", "decade"),
    "weekday": tuple(name[:3].lower() for name in WEEKDAYS),
    "month": tuple(name[:3].lower() for name in MONTHS),
    "season": tuple(SEASONS),
    "holiday": ("christmas", "xmas", "thanksgiving", "halloween", "easter", "juneteenth", "new year", "cinco", "july",
                "valentine", "black friday", "cyber monday", "patrick", "fool", "earth day", "independence", "veteran",
                "mlk", "luther king", "president", "mother", "father", "memorial", "labor", "columbus",
                "ash wednesday", "palm sunday", "maundy", "good friday"),
    "which": ("last", "past", "this", "next", "coming", "following"),
    "digits": tuple("0123456789"),
}
"""Words in lower case, by kind. A line must contain one of a kind before a rule that needs it is tried: much faster."""

MONTH = "(?-i:" + "|".join(f"{m[:3]}(?:{m[3:]}\\b|\\b\\.?)" for m in MONTHS) + r"|Sept\b\.?)"
DAY = r"(?P<d>\d{1,2})(?:st\b|nd\b|rd\b|th\b|\b)"
YEAR = r"(?P<y>(?:19|20)\d\d)\b"
COUNT = "|".join(sorted({*NUMBERS, "a few", "few"}, key=len, reverse=True))
"""Fragments that the question window shares. Months are case-sensitive, so that "may" and "march" are none."""

_FULL = "|".join(WEEKDAYS)
_WEEKDAY = rf"(?:{_FULL}|(?-i:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun))\b"
_N = rf"(?P<n>\d{{1,3}}|{COUNT}|several)"
_U = r"(?P<u>minute|hour|night|day|week|weekend|fortnight|month|year|decade)s?\b"
_PART = r"(?: (?:early |late )?(?:morning|afternoon|evening|night)\b)?"
_HOW = r"(?P<how>this past|this coming|the coming|last|past|this|next|coming)"
_BOUND = r"(?:on|by|until|till|since|before|after|from|for|around|about|of)"
_IN = r"(?:in|during|since|until|till|by|before|after|around|from|of)"
_EDGE = r"(?:the )?(?:early|late|mid|middle of|end of|beginning of|start of)[ -]"
_DASH = r"\s?(?:-|\u2013|to|through)\s?"
_SEASON = r"(?P<s>spring|summer|autumn|fall|winter)"
_HOLIDAY = rf"(?P<f>{HOLIDAY})"
_THROUGH = r"(?:(?:over|in|during|for|within) )?"
_FREE = (r"(?=\W*$|\s*[,.;:!?)]|\s(?:and|or|but|so|at|with|for|to|because|when|where|after|before|as|in|on|i|we|he|she|"
         r"they|was|were|is|the|my|our|day|night|morning|dinner|party|weekend)\b)")
"""The expression stands by itself: it is no part of a name ("Sunday mass", "Halloween costumes")."""


def _no_date(context: MatchContext) -> None:  # noqa: ARG001 (a rule's signature)
    """Resolve nothing, and keep other rules from a part of the name: the Friday of "Black Friday"."""


Meaning = Callable[[MatchContext], Span | None]


@dataclass(frozen=True)
class Rule:
    """A pattern and the function that resolves it; ``needs`` are kinds or words, all of which a line must contain.

    ``core`` is the pattern without look-around, so that any engine can search for it.
    """

    needs: tuple[str, ...]
    core: str
    span: Meaning
    after: str = ""
    before: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """The pattern, compiled at its first use: all of them take a tenth of a second."""
        return re.compile(self.before + self.core + self.after, re.I | re.A)


def _rule(needs: str, core: str, span: Meaning, after: str = "", before: str = "") -> Rule:
    return Rule(tuple(needs.split()), core, span, after, before)


RULES = (
    _rule("digits", r"\b(?P<w>(?P<iso>(?P<y>(?:19|20)\d\d))[-/](?P<mn>\d\d?)[-/](?P<d>\d\d?))", absolute.numeric,
          after=r"(?!\d)"),
    _rule("digits /", r"(?P<w>(?P<mn>\d\d?)/(?P<d>\d\d?)/(?P<y>\d{4}|\d\d))", absolute.numeric, before=r"(?<![\d/.])",
          after=r"(?![\d/])"),
    _rule("digits /", r"\b(?:on|since|by|until|before|after|from|dated) (?P<w>(?P<mn>\d\d?)/(?P<d>\d\d?))",
          absolute.numeric, after=r"(?![\d/]|\.\d|\s*(?:cup|tsp|tbsp|of|teaspoon|tablespoon|inch|full|mile))"),
    _rule("the", rf"\bthe (?P<w>(?P<nth>first|1st|second|2nd|third|3rd|fourth|4th|last) (?P<wd>{_WEEKDAY}|weekend\b) "
              rf"(?:of|in) (?:(?P<how>last|this|next) month\b|(?P<m>{MONTH})(?:,? {YEAR})?))", absolute.nth_of_month),
    _rule("month digits", rf"\b(?P<w>(?:the )?{DAY} (?:of (?:the )?)?(?P<m>{MONTH})(?:,? {YEAR})?)", absolute.in_month),
    _rule("month digits",
          rf"\b(?P<w>(?P<m>{MONTH}) (?:the )?{DAY}(?:{_DASH}(?P<d2>\d\d?)(?:st|nd|rd|th|\b))?(?:,? {YEAR})?)",
          absolute.in_month, after=r"(?!\d| ?(?:%|[ap]\.?m\b))"),
    _rule("digits of unit", rf"\b(?P<w>(?:the )?{DAY} of (?P<how>last|this|next) month)\b", absolute.day_of_month),
    _rule("digits", rf"\b{_BOUND} (?P<w>the (?P<d>\d{{1,2}})(?:st|nd|rd|th))", absolute.day_of_month,
          after=r"(?=\s*(?:$|[,.;!?)]|(?:and|or|but|so|at|with|for|to|because|when|due|as|which|from)\b))"),
    _rule("month digits", rf"\b(?P<w>(?:{_EDGE})?(?P<m>{MONTH}),?(?: of)? {YEAR})", absolute.month),
    _rule("month", rf"\b(?:{_HOW} |{_IN} (?:{_EDGE})?|{_EDGE})(?P<w>(?P<m>{MONTH})(?:(?:{_DASH}|\sand\s|\sor\s)"
                   rf"(?P<m2>{MONTH}))?)", absolute.month),
    _rule("unit ago weekday", rf"\b(?P<w>{_N} weeks? ago (?:on |last )?(?P<wd>{_WEEKDAY}))", absolute.weekday),
    _rule("half unit", r"\b(?P<w>(?P<half>half an?) (?P<u>hour|day|week|month|year|decade) (?:ago|back))\b",
          relative.ago),
    _rule("unit ago", rf"\b(?P<w>{_N} (?P<half>and a half )?{_U}(?P<half2> and a half)? ago)\b", relative.ago),
    _rule("unit back", rf"\b(?P<w>{_N} {_U} back)\b", relative.ago, after=r"(?! (?:to|home|in|on|at|from|and)\b)"),
    _rule("unit from", rf"\b(?P<w>{_N} {_U} from (?:(?P<from>today|tomorrow)\b|(?P<wd>{_WEEKDAY})))",
          relative.from_day),
    _rule("near", rf"\b(?P<w>(?:the )?day before yesterday|(?:the )?day after tomorrow|the night before last|"
                  rf"yesterday{_PART}|tomorrow{_PART}|(?:earlier |later )?(?:today|tonight)|"
                  r"this (?:morning|afternoon|evening)|last (?:night|evening))\b", relative.relative_day),
    _rule("unit from now", rf"\b(?P<w>{_N} {_U} from (?P<now>now))\b", relative.ahead),
    _rule("unit in", rf"\b(?P<w>in (?:about )?(?:{_N} |(?P<half>half an? )){_U}(?:'s? time)?)", relative.ahead,
          before=r"(?<!times )(?<!time )", after=r"(?! of\b)"),
    _rule("unit which",
          rf"\b(?P<w>{_THROUGH}(?:the |these |this )?(?P<how>past|last|next|(?:up)?coming|following) {_N} {_U})",
          relative.duration, after=r"(?! of\b)"),
    _rule("unit which", rf"\b(?P<w>{_THROUGH}(?:the (?P<how>past|last|next)|this past) (?P<u>week|month|year))\b",
          relative.duration, after=r"(?! of\b)"),
    _rule("unit for", rf"\b(?P<for>for) (?P<w>(?:about |almost |nearly |around )?{_N} {_U}(?P<now> now\b)?)",
          relative.duration, after=r"(?! ago)"),
    _rule("unit now", rf"\b(?P<w>{_N} {_U}(?P<now> now))\b", relative.duration),
    _rule("holiday digits", rf"\b(?P<w>{_HOLIDAY},? {YEAR})", absolute.holiday),
    _rule("holiday which", rf"\b(?P<w>{_HOW} {_HOLIDAY})\b", absolute.holiday),
    _rule("holiday", rf"\b(?:{_BOUND}|at|over|during) (?P<w>{_HOLIDAY})\b", absolute.holiday, after=_FREE),
    _rule("holiday weekday", r"\b(?P<w>(?:black|good) friday|(?:cyber|easter) monday|ash wednesday|palm sunday|"
                           r"easter sunday|maundy thursday)\b", _no_date),
    _rule("weekday which", rf"\b(?P<w>(?:the )?(?P<wd>{_WEEKDAY}) (?P<twice>before last|after next))\b",
          absolute.weekday),
    _rule("weekday which week", rf"\b(?P<w>(?P<wd>{_WEEKDAY}){_PART},? (?:of )?(?P<week>last|this|next) week)\b",
          absolute.weekday),
    _rule("weekday which week", rf"\b(?P<w>(?P<week>last|this|next) week,? (?:on )?(?P<wd>{_WEEKDAY}){_PART})",
          absolute.weekday),
    _rule("weekday which", rf"\b(?P<w>{_HOW} (?P<wd>{_WEEKDAY}){_PART})", absolute.weekday),
    _rule("weekday", rf"\b{_BOUND} (?P<w>(?P<wd>{_WEEKDAY}){_PART})", absolute.weekday,
          after=rf"(?!{_DASH}{_WEEKDAY}|\s?and\s?{_WEEKDAY})"),
    _rule("weekday", rf"(?P<w>(?-i:(?P<wd>{_FULL}))\b{_PART})", absolute.weekday, after=_FREE,
          before=r"(?<=[a-z] )(?<!\ba )(?<!\ban )(?<!very )(?<!each )(?<!the )(?<!to )(?<!and )"),
    _rule("unit which", r"\b(?P<w>(?:the )?(?P<u>week|weekend|month|year) (?P<twice>before last|after next))\b",
          relative.unit),
    _rule("unit time", r"\b(?P<w>(?P<time>this time) (?P<how>last|next) (?P<u>week|month|year))\b", relative.unit),
    _rule("unit which",
          r"\b(?P<w>(?:earlier |later )?(?P<how>this past|last|this|next) (?P<u>week(?:end)?|month|year))\b",
          relative.unit, after=r"(?! of\b)"),
    _rule("weekend", r"\b(?:over|on|at|for|during|by|until) (?P<w>the (?P<u>weekend))\b", relative.unit),
    _rule("season digits", rf"\b(?P<w>(?:the )?{_SEASON}(?: of)? {YEAR})", absolute.season),
    _rule("season which", rf"\b(?P<w>{_HOW} {_SEASON})\b", absolute.season, after=r"(?! (?:break|camp))"),
    _rule("season", rf"\b(?:in|during|over) (?P<w>the {_SEASON})\b", absolute.season,
          after=r"(?! (?:months|break|camp|season|(?-i:[A-Z])))"),
    _rule("digits the", r"\b(?P<w>in the (?:early |late |mid-?)?'?(?P<dec>[5-9]0)'?s)\b", absolute.decade),
    _rule("digits", rf"\b(?:in|since|during|from|until|till|by|before|after|around|of) (?P<w>{YEAR})", absolute.year,
          after=r"(?![-/,.]\d|%| (?:x|by)\b)"),
)
"""The rules, the more certain first."""
