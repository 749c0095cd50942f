"""The question classifiers of three published systems; none publishes its patterns, so these are ours."""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.query.classify import PatternClassifier, Patterns
from memlab.stage import stage
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

_TIME_WORDS = (
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
_TEMPORAL = "|".join(_TIME_WORDS)
"""Words of a question about time, or about what happened at a time ("What did I do last Tuesday?")."""

GIMLI_CLASSES: Patterns = (
    # these ask for a fact, whatever the other words are
    ("factual", r"^\W*(?:when|who|whose|whom|where)\b|^\W*how (?:many|much|long|often|old|far|big|tall)\b"),
    ("procedural", r"\bhow (?:do|does|did|can|could|should|would|to)\b|\b(?:steps?|procedure|instructions?|recipe|"
                   r"guide|tutorial|workflow)\b|\bways? to\b|\b(?:set up|install|configure|fix|troubleshoot)\b"),
    ("conceptual", r"\b(?:why|explain|describe|compare|difference between|relationship between|overview|concept|"
                   r"meaning|opinion|thoughts|ideas|advice|tips|reasons?)\b|\bwhat (?:does|do) .*\bmean\b|"
                   r"\b(?:recommend|suggest)\b|\bshould i\b|\bwould\b.*\b(?:like|enjoy|consider|want|be)\b"),
)

V1_TYPES: Patterns = (
    ("assistant", r"\bdid you \w+|\byou (?:\w+ )?(?:said|told|mentioned|suggested|recommended|gave|provided|listed|"
                  r"explained|described|wrote|created|shared)\b|\byour (?:earlier |previous |last )?(?:answer|reply|"
                  r"suggestions?|recommendations?|list)\b|\b(?:our|earlier|previous|last) (?:\w+ )?(?:chat|"
                  r"conversation|discussion)\b|\bwe (?:discussed|talked|chatted)\b"),
    ("preference", r"\b(?:recommend|suggest)(?:ions?|s)?\b|\b(?:advice|tips?|ideas?|thoughts)\b|\bshould i\b|"
                   r"\bwhat would i (?:like|enjoy)\b"),
    ("temporal", _TEMPORAL),
    ("update", r"\b(?:current|currently|now|nowadays|latest|newest|still|recently|anymore|these days)\b|"
               r"\bmost recent\b|\bup to date\b|\bso far\b"),
    ("multi_session", r"\bhow (?:many|much|often)\b|\b(?:total|altogether|combined|average|both|all|each|every|across|"
                      r"in common|number of)\b|\b(?:compared|difference|than)\b|\b(?:list|kinds|types)\b"),
    ("factual", r"^\W*(?:what|who|whom|whose|where|which|is|are|was|were|do|does|did|has|have|had|name)\b"),
)

DETECTORS: Patterns = (
    ("assistant", r"\b(?:did you|you) (?:\w+ )?(?:suggest|recommend|mention|advise|explain|tell|say|give|list|provide)"
                  r"(?:e?d)?\b|\byou (?:told|said|gave|wrote)\b|\byour (?:suggestion|recommendation|advice|answer)s?\b|"
                  r"\b(?:our|previous|earlier) (?:\w+ )?(?:conversation|chat)\b"),
    ("preference", r"\b(?:my|i) (?:\w+ )?(?:favou?rites?|preferences?|prefer|like|love|enjoy|hate|dislike)\b|"
                   r"\bfavou?rite\b|\b(?:recommend|suggest) (?:me|some|a|an|any)\b|\bany (?:\w+ )?(?:tips|ideas|advice|"
                   r"suggestions|recommendations)\b|\bshould i\b|\bfor me\b"),
    ("update", r"\bmy (?:current|latest|new|newest|most recent)\b|\b(?:currently|now|still|these days|at the moment|"
               r"right now)\b|\b(?:latest|newest|most recent(?:ly)?)\b|\bchanged?\b"),
    ("temporal", _TEMPORAL),
    ("multi_session", r"\bhow (?:many|much)\b|\b(?:total|altogether|combined|overall|average)\b|\b(?:all|every|each) "
                      r"(?:of )?(?:the|my|time|our)?\b|\b(?:both|across|throughout|list)\b|\bhow often\b|"
                      r"\bdifferent\b"),
)

_REQUEST = re.compile(r"\b(?:can|could|would|will) you (?:\w+ )?(?:suggest|recommend|give|list|tell)\b", re.IGNORECASE)
"""A request to the assistant, not a question about what it said."""


@stage
class GimliClasses(PatternClassifier):
    """Gimli's factual, conceptual or procedural: one class per question.

    >>> [GimliClasses.classify(q) for q in ("Who is Ann?", "Why did Ann leave?", "How do I descale the kettle?")]
    [('factual',), ('conceptual',), ('procedural',)]
    """

    patterns: ClassVar = GIMLI_CLASSES


@stage
class V1Types(PatternClassifier):
    """The seven query types of RAG Memory Provider v1: one class per question.

    Its names for them: temporal, knowledge-update (``update``), multi-hop (``multi_session``), preference,
    assistant-recall (``assistant``), factual, general.

    >>> V1Types.classify("How many plants did I buy?"), V1Types.classify("Tell me about Ann.")
    (('multi_session',), ('general',))
    """

    patterns: ClassVar = V1_TYPES
    default: ClassVar = "general"


@stage
class MemoryStackDetectors(PatternClassifier):
    """MemoryStack's five detectors: a question has the class of each that fires.

    >>> MemoryStackDetectors.classify("How many times did I change my current phone plan since May?")
    ('update', 'temporal', 'multi_session')
    >>> MemoryStackDetectors.classify("Could you suggest a film for me?")
    ('preference',)
    """

    patterns: ClassVar = DETECTORS
    several: ClassVar = True

    @classmethod
    def classify(cls, question: str) -> tuple[str, ...]:
        """Return every class whose detector fires, at least one."""
        return super().classify(_REQUEST.sub("suggest", question))
