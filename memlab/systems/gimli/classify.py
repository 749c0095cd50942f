"""Gimli's three classes of questions; it does not print their patterns, so these are ours."""

from __future__ import annotations

from typing import ClassVar

from memlab.query.classify import PatternClassifier, Patterns
from memlab.stage import stage

GIMLI_CLASSES: Patterns = (
    # these ask for a fact, whatever the other words are
    ("factual", r"^\W*(?:when|who|whose|whom|where)\b|^\W*how (?:many|much|long|often|old|far|big|tall)\b"),
    ("procedural", r"\bhow (?:do|does|did|can|could|should|would|to)\b|\b(?:steps?|procedure|instructions?|recipe|"
                   r"guide|tutorial|workflow)\b|\bways? to\b|\b(?:set up|install|configure|fix|troubleshoot)\b"),
    ("conceptual", r"\b(?:why|explain|describe|compare|difference between|relationship between|overview|concept|"
                   r"meaning|opinion|thoughts|ideas|advice|tips|reasons?)\b|\bwhat (?:does|do) .*\bmean\b|"
                   r"\b(?:recommend|suggest)\b|\bshould i\b|\bwould\b.*\b(?:like|enjoy|consider|want|be)\b"),
)


@stage
class GimliClasses(PatternClassifier):
    """Gimli's factual, conceptual or procedural: one class per question.

    >>> [GimliClasses.classify(q) for q in ("Who is Ann?", "Why did Ann leave?", "How do I descale the kettle?")]
    [('factual',), ('conceptual',), ('procedural',)]
    """

    patterns: ClassVar = GIMLI_CLASSES
