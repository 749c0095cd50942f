"""MemoryStack's five detectors of question types; it does not print their patterns, so these are ours."""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.query.classify import TIME_WORDS, PatternClassifier, Patterns
from memlab.stage import stage

DETECTORS: Patterns = (
    ("assistant", r"\b(?:did you|you) (?:\w+ )?(?:suggest|recommend|mention|advise|explain|tell|say|give|list|provide)"
                  r"(?:e?d)?\b|\byou (?:told|said|gave|wrote)\b|\byour (?:suggestion|recommendation|advice|answer)s?\b|"
                  r"\b(?:our|previous|earlier) (?:\w+ )?(?:conversation|chat)\b"),
    ("preference", r"\b(?:my|i) (?:\w+ )?(?:favou?rites?|preferences?|prefer|like|love|enjoy|hate|dislike)\b|"
                   r"\bfavou?rite\b|\b(?:recommend|suggest) (?:me|some|a|an|any)\b|\bany (?:\w+ )?(?:tips|ideas|advice|"
                   r"suggestions|recommendations)\b|\bshould i\b|\bfor me\b"),
    ("update", r"\bmy (?:current|latest|new|newest|most recent)\b|\b(?:currently|now|still|these days|at the moment|"
               r"right now)\b|\b(?:latest|newest|most recent(?:ly)?)\b|\bchanged?\b"),
    ("temporal", TIME_WORDS),
    ("multi_session", r"\bhow (?:many|much)\b|\b(?:total|altogether|combined|overall|average)\b|\b(?:all|every|each) "
                      r"(?:of )?(?:the|my|time|our)?\b|\b(?:both|across|throughout|list)\b|\bhow often\b|"
                      r"\bdifferent\b"),
)

_REQUEST = re.compile(r"\b(?:can|could|would|will) you (?:\w+ )?(?:suggest|recommend|give|list|tell)\b", re.IGNORECASE)
"""A request to the assistant, not a question about what it said."""


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
