"""MemoryStack's five detectors, of which several may fire; its patterns are not published, these are ours."""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.query.classify import READS, WRITES, by_words
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

_UNIT = r"(?:days?|weeks?|weekends?|months?|years?)"

DETECTORS: tuple[tuple[str, str], ...] = (
    ("assistant", r"\b(?:did you|you) (?:\w+ )?(?:suggest|recommend|mention|advise|explain|tell|say|give|list|provide)"
                  r"(?:e?d)?\b|\byou (?:told|said|gave|wrote)\b|\byour (?:suggestion|recommendation|advice|answer)s?\b|"
                  r"\b(?:our|previous|earlier) (?:\w+ )?(?:conversation|chat)\b"),
    ("preference", r"\b(?:my|i) (?:\w+ )?(?:favou?rites?|preferences?|prefer|like|love|enjoy|hate|dislike)\b|"
                   r"\bfavou?rite\b|\b(?:recommend|suggest) (?:me|some|a|an|any)\b|\bany (?:\w+ )?(?:tips|ideas|advice|"
                   r"suggestions|recommendations)\b|\bshould i\b|\bfor me\b"),
    ("update", r"\bmy (?:current|latest|new|newest|most recent)\b|\b(?:currently|now|still|these days|at the moment|"
               r"right now)\b|\b(?:latest|newest|most recent(?:ly)?)\b|\bchanged?\b"),
    ("temporal", rf"\bwhen\b|\bhow long\b|\bwhat (?:date|day|time|month|year)\b|\b(?:ago|before|after|since)\b|"
                 rf"\bhow many {_UNIT}\b|\b(?:last|past) {_UNIT}\b|\b(?:yesterday|today)\b|\b(?:first|order)\b"),
    ("multi_session", r"\bhow (?:many|much)\b|\b(?:total|altogether|combined|overall|average)\b|\b(?:all|every|each) "
                      r"(?:of )?(?:the|my|time|our)?\b|\b(?:both|across|throughout|list)\b|\bhow often\b|"
                      r"\bdifferent\b"),
)
"""(class, pattern) in the order in which they are told; a question that sets off none is ``factual``."""

_COMPILED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in DETECTORS)
_REQUEST = re.compile(r"\b(?:can|could|would|will) you (?:\w+ )?(?:suggest|recommend|give|list|tell)\b", re.IGNORECASE)
"""Asks the assistant for something now, and not for what it said."""


def detect(question: str) -> tuple[str, ...]:
    """Name every class whose detector fires; at least one.

    >>> detect("How many times did I change my current phone plan since May?")
    ('update', 'temporal', 'multi_session')
    >>> detect("Could you suggest a film for me?"), detect("Who is Ann?")
    (('preference',), ('factual',))
    """
    said = _REQUEST.sub("suggest", question)
    return tuple(name for name, pattern in _COMPILED if pattern.search(said)) or ("factual",)


@stage
class MemoryStackDetectors:
    """MemoryStack's five detectors: a row for each that fires."""

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the classes of every question."""
        return by_words(tables, detect)
