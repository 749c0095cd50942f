"""Classes of questions by patterns; no published system prints its words for time, so those here are ours."""

from __future__ import annotations

import re
from itertools import islice
from typing import ClassVar

import polars as pl

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import Tables, frame, with_text
from memlab.store import Store
from memlab.support.text.temporal.calendar import MONTHS, SEASONS, WEEKDAYS
from memlab.support.text.temporal.holidays import HOLIDAY
from memlab.support.text.temporal.patterns import COUNT, DAY, MONTH, YEAR

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


Patterns = tuple[tuple[str, str], ...]
"""(class, pattern), in order of precedence."""

_SPAN = r"(?:second|minute|hour|day|week|month|year|decade)s?"

RULES: Patterns = (
    ("preference", r"\b(?:can|could|would) you (?:\w+ )?(?:recommend|suggest|help|give)|\b(?:recommend|suggest) "
                   r"(?:me |some |a |an )|\b(?:any|some) (?:\w+ )?(?:tips|advice|ideas?|suggestions?|recommendations?)"
                   r"|\bwhat should i\b|\bshould i\b|\bdo you think\b|\bany (?:\w+ )?thoughts\b"),
    ("assistant", r"\byou (?:\w+ )?(?:suggest|recommend|mention|told|tell|said|say|gave|give|provid|list|describ|"
                  r"explain|advis|creat|wrote|made|shar)\w*|"
                  r"\b(?:our|previous|earlier|last) (?:\w+ )?(?:conversation|chat|discussion)|"
                  r"\bwe (?:\w+ )?(?:discuss|talk|chat)\w*|\byour (?:\w+ )?(?:suggestion|recommendation|"
                  r"answer|list)"),
    # before counting: a distance in time is asked with "how many" too, but one or two places answer it
    ("temporal", rf"\bhow many {_SPAN}\b.*\b(?:ago|between|before|after|since|passed|elapsed|from|until|took|take|"
                 rf"later|had)\b|\bhow long\b|^when\b|\bwhen (?:did|was|is|were|will|does|do|has|have)\b|"
                 rf"\bwhat (?:date|day|month|year|time)\b|\bwhich (?:date|day|month|year)\b|"
                 rf"\b(?:first|earlier|later|earliest|latest of)\b.*\bor\b|\bin what order\b|\border of\b|"
                 rf"\bfrom (?:earliest|first|oldest)\b|\b{_SPAN} ago\b|\blast (?:{_SPAN}|monday|tuesday|wednesday|"
                 rf"thursday|friday|saturday|sunday|weekend)\b"),
    ("counting", r"\bhow many\b|\bhow much\b.*\b(?:total|altogether|spen[dt]|earn\w*|rais\w*|sav\w*|all)\b|"
                 r"\b(?:total|number|sum|average) (?:\w+ )?(?:of|amount|number|cost|distance|money|time|weight|days|"
                 r"hours)\b|\bin total\b|\bhow often\b|\blist (?:all|every|the)\b|\ball (?:of )?(?:the|my)\b|"
                 # a question in the plural asks for a list
                 r"\b(?:what|which) (?:[\w+'-]+ ){0,3}?[\w-]+(?<![sui])s (?:of [\w' -]+ )?(?:has|have|did|does|do|are|"
                 r"were|can|could)\b|\b(?:what|which) (?:kinds|types|sorts) of\b"),
    ("update", r"\bcurrent(?:ly)?\b|\bright now\b|\bnow\b|\bmost recent(?:ly)?\b|\blatest\b|\bnewest\b|\bstill\b|"
               r"\bthese days\b|\bat the moment\b|\bso far\b|\bnowadays\b"),
)

CLASSES: tuple[str, ...] = (*(name for name, _ in RULES), "factual")


class PatternClassifier:
    """Base of the classifiers by rules: a question has the first class whose pattern occurs in it, or all of them."""

    reads: ClassVar = ("questions", "texts")
    writes: ClassVar = ("classes",)
    patterns: ClassVar[Patterns]
    default: ClassVar[str] = "factual"  # the class of a question in which no pattern occurs
    several: ClassVar[bool] = False  # whether a question has all classes whose patterns occur
    flags: ClassVar[re.RegexFlag] = re.IGNORECASE

    @classmethod
    def classify(cls, question: str) -> tuple[str, ...]:
        """Return the classes of a question, at least one."""
        matching = (name for name, pattern in cls.patterns if re.search(pattern, question, cls.flags))
        return tuple(matching if cls.several else islice(matching, 1)) or (cls.default,)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return ``classes``: one row per class of a question."""
        questions = with_text(tables["questions"], tables["texts"]).select("question", pl.col("text").fill_null(""))
        rows = [(question, name) for question, text in questions.iter_rows() for name in self.classify(text)]
        return Tables(classes=frame("classes", {"question": [q for q, _ in rows], "class": [name for _, name in rows]}))


@stage
class Rules(PatternClassifier):
    """memlab's own rules: one class per question.

    ``counting`` (an answer gathered from many places), ``temporal``, ``preference`` (advice that should fit the
    person), ``assistant`` (what the assistant said), ``update`` (the present state of what changes), ``factual``.

    >>> [Rules.classify(q) for q in ("How many plants did I buy?", "How many days ago did I buy it?", "Who is Ann?")]
    [('counting',), ('temporal',), ('factual',)]
    """

    patterns: ClassVar = RULES
    flags: ClassVar = re.IGNORECASE | re.DOTALL
