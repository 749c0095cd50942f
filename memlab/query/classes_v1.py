"""The seven query types of RAG Memory Provider v1; its patterns are not published, these are ours.

Its names for them: temporal, knowledge-update (``update``), multi-hop (``multi_session``), preference, assistant-recall
(``assistant``), factual, general.
"""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.query.classify import READS, WRITES, by_words
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

_UNIT = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?)"

PATTERNS: tuple[tuple[str, str], ...] = (
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
"""(class, pattern) in order of precedence; a question that fits none is ``general``."""

_COMPILED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in PATTERNS)


def classify_v1(question: str) -> str:
    """Name the class of a question.

    >>> classify_v1("How many plants did I buy?"), classify_v1("Tell me about Ann.")
    ('multi_session', 'general')
    """
    return next((name for name, pattern in _COMPILED if pattern.search(question)), "general")


@stage
class V1Types:
    """RAG Memory Provider v1's seven query types: one class each."""

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the class of every question."""
        return by_words(tables, lambda question: (classify_v1(question),))
