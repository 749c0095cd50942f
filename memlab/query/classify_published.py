"""Gimli's three classes of queries, which it names (factual, conceptual, procedural) without rules; these are ours."""

from __future__ import annotations

import re
from typing import ClassVar

from memlab.query.classify import READS, WRITES, by_words
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables

PATTERNS: tuple[tuple[str, str], ...] = (
    # these ask for a fact, whatever else their words are
    ("factual", r"^\W*(?:when|who|whose|whom|where)\b|^\W*how (?:many|much|long|often|old|far|big|tall)\b"),
    ("procedural", r"\bhow (?:do|does|did|can|could|should|would|to)\b|\b(?:steps?|procedure|instructions?|recipe|"
                   r"guide|tutorial|workflow)\b|\bways? to\b|\b(?:set up|install|configure|fix|troubleshoot)\b"),
    ("conceptual", r"\b(?:why|explain|describe|compare|difference between|relationship between|overview|concept|"
                   r"meaning|opinion|thoughts|ideas|advice|tips|reasons?)\b|\bwhat (?:does|do) .*\bmean\b|"
                   r"\b(?:recommend|suggest)\b|\bshould i\b|\bwould\b.*\b(?:like|enjoy|consider|want|be)\b"),
)
"""(class, pattern) in order of precedence; a question that fits none is factual."""

_COMPILED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in PATTERNS)


def classify_gimli(question: str) -> str:
    """Name the class of a question.

    >>> [classify_gimli(q) for q in ("Who is Ann?", "Why did Ann leave?", "How do I descale the kettle?")]
    ['factual', 'conceptual', 'procedural']
    """
    return next((name for name, pattern in _COMPILED if pattern.search(question)), "factual")


@stage
class GimliClasses:
    """Gimli's factual, conceptual or procedural: one class each."""

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the class of every question."""
        return by_words(tables, lambda question: (classify_gimli(question),))
