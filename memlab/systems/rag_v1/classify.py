"""The seven query types of RAG Memory Provider v1; it does not print their patterns, so these are ours."""

from __future__ import annotations

from typing import ClassVar

from memlab.query.classify import PatternClassifier, Patterns
from memlab.query.time_words import TIME_WORDS
from memlab.stage import stage

V1_TYPES: Patterns = (
    ("assistant", r"\bdid you \w+|\byou (?:\w+ )?(?:said|told|mentioned|suggested|recommended|gave|provided|listed|"
                  r"explained|described|wrote|created|shared)\b|\byour (?:earlier |previous |last )?(?:answer|reply|"
                  r"suggestions?|recommendations?|list)\b|\b(?:our|earlier|previous|last) (?:\w+ )?(?:chat|"
                  r"conversation|discussion)\b|\bwe (?:discussed|talked|chatted)\b"),
    ("preference", r"\b(?:recommend|suggest)(?:ions?|s)?\b|\b(?:advice|tips?|ideas?|thoughts)\b|\bshould i\b|"
                   r"\bwhat would i (?:like|enjoy)\b"),
    ("temporal", TIME_WORDS),
    ("update", r"\b(?:current|currently|now|nowadays|latest|newest|still|recently|anymore|these days)\b|"
               r"\bmost recent\b|\bup to date\b|\bso far\b"),
    ("multi_session", r"\bhow (?:many|much|often)\b|\b(?:total|altogether|combined|average|both|all|each|every|across|"
                      r"in common|number of)\b|\b(?:compared|difference|than)\b|\b(?:list|kinds|types)\b"),
    ("factual", r"^\W*(?:what|who|whom|whose|where|which|is|are|was|were|do|does|did|has|have|had|name)\b"),
)


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
