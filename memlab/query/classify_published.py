"""The question classifiers of three published systems; none publishes its patterns, so these are ours."""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.query.classify import PatternClassifier, Patterns
from memlab.stage import stage

_UNIT = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"
_PERIOD = r"(?:days?|weeks?|weekends?|months?|years?)"

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
    ("temporal", rf"\bwhen\b|\bhow long\b|\bhow many {_UNIT}\b|\bago\b|\b(?:before|after|since|until|between|during)\b|"
                 rf"\b(?:what|which) (?:date|day|month|year|time)\b|\border\b|\b(?:first|earlier|earliest)\b|"
                 rf"\b(?:last|past|this) {_UNIT}\b"),
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
    ("temporal", rf"\bwhen\b|\bhow long\b|\bwhat (?:date|day|time|month|year)\b|\b(?:ago|before|after|since)\b|"
                 rf"\bhow many {_PERIOD}\b|\b(?:last|past) {_PERIOD}\b|\b(?:yesterday|today)\b|\b(?:first|order)\b"),
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
