"""Wording of questions about time, for classifiers by rules; no published system prints its own, so this is ours."""

from __future__ import annotations

import re

from memlab.text.temporal.calendar import MONTHS, SEASONS, WEEKDAYS
from memlab.text.temporal.holidays import HOLIDAY
from memlab.text.temporal.patterns import COUNT, DAY, MONTH, YEAR

_UNIT = r"(?:seconds?|minutes?|hours?|days?|nights?|weeks?|weekends?|fortnights?|months?|years?|decades?)"
_PERIOD = r"(?:hours?|days?|nights?|weeks?|weekends?|fortnights?|months?|quarters?|years?|decades?|semesters?)"
_COUNT = rf"(?:\d+|{COUNT}|couple(?: of)?|several)"
_PART = r"(?:mornings?|afternoons?|evenings?|nights?)"
_MONTH_NAME = "(?:" + "|".join(f"{name[:3]}(?:{name[3:]})?" for name in MONTHS) + ")"
_DAY, _YEAR = (re.sub(r"\?P<\w+>", "?:", pattern) for pattern in (DAY, YEAR))
_DAY_NAME = f"(?:{'|'.join(WEEKDAYS)})"
_SEASON = f"(?:{'|'.join(SEASONS)})"
_WHICH = r"(?:last|past|this|next|coming|previous|following)"
_FROM = r"(?:on|since|until|till|by|before|after|around|during|between|early|late)"

_PATTERNS = (
    r"\bwhen\b|\bhow long\b|\b(?:what|which) (?:date|day|month|year|time)\b",
    rf"\bhow many {_UNIT}\b|\bago\b|\b{_COUNT} {_PERIOD} (?:back|earlier|later|before|after|from now)\b",
    r"\b(?:before|after|since|until|till|during)\b",
    # what lies between two things is often no time
    r"(?<!difference )(?<!differences )(?<!relationship )(?<!connection )(?<!choose )(?<!choice )(?<!decide )"
    r"\bbetween\b",
    r"\b(?:what|which|the|chronological) order\b(?! (?:for|from)\b)|\b(?:first|earlier|earliest)\b",
    r"\b(?:yesterday|today|tonight|tomorrow|the other (?:day|week|night))\b",
    rf"\b{_WHICH} (?:{_COUNT} )?(?:{_PERIOD}|{_PART}|{_DAY_NAME}s?|{_SEASON})\b",
    r"\b(?:over|on|at|during|for) the (?:long )?weekend\b",
    # a weekday, but not in a name ("my Sunday dress") and not as a habit ("on Fridays")
    rf"\b{_FROM} (?:the )?{_DAY_NAME}\b|\b{_DAY_NAME} {_PART}\b|"
    rf"\b{_DAY_NAME}(?=\W*$|[,;:]| (?:and|or|at|with|to|before|after|of|in|last|this|next|the|my|i|we)\b)",
    # a month, but neither the verbs "may" and "march" nor a person named June
    rf"\b(?:in|{_FROM}|throughout|early|mid|late)[ -](?:early |mid |late )?{_MONTH_NAME}\b(?!['\u2019]s\b)|"
    rf"\b(?:last|past|next) {_MONTH_NAME}\b|\bthis (?-i:{_MONTH_NAME})\b|"
    rf"\bfrom {_MONTH_NAME} (?:to|until|till|through)\b|\b(?:end|beginning|start|middle|month|week|\w+day|"
    rf"\d(?:st|nd|rd|th)?) of {_MONTH_NAME}\b|\b{_DAY} {MONTH}|\b{MONTH} (?:the )?{_DAY}|\b{MONTH} {_YEAR}",
    rf"\b(?:in|of|by|from|{_FROM}) {_YEAR}|\b\d{{4}}-\d\d?-\d\d?\b|"
    r"\b\d\d?/\d\d?/\d{2,4}\b",
    rf"\b(?:in|over) (?:the )?(?:early |late )?{_SEASON}\b(?! (?:of|from|into)\b)|"
    rf"\b{_SEASON} (?:of )?{_YEAR}",
    rf"\b(?:at|over|around|on|{_WHICH}) (?:{HOLIDAY})\b",
)
TIME_WORDS = "|".join(_PATTERNS)
"""Words of a question about time, or about what happened at a time ("What did I do last Tuesday?")."""
