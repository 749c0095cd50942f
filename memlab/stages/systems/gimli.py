"""Gimli's hybrid memory search: chunks of 400 tokens, .7 cosine + .3 / (1 + rank), nothing under .35.

``conf/system/gimli.yaml``:

* write: ``chunk``: tokens, 400 with an overlap of 80.
* search: ``dense``: flat, ``lexical``: bm25. Each gives 4 x 6 candidates.
* rank: ``score``: gimli. ``select``: fixed_6.
* read: ``prompt``: gimli.

**Score** of chunk c for question q::

    s(q, c) = .7 (1 - d(q, c)) + .3 / (1 + r(q, c))      kept if s(q, c) >= .35

d: cosine distance; r: rank of c by BM25, from 1. A hit of the word search alone has no d; the write-up does not say
what it gets. Here its first term is 0, so that it has .15 at most and is never shown.

**Options** that the write-up recommends: ``query/classify=gimli``, factual, conceptual or procedural (``classify``
here), with weights for each class (``rank/score=routed``); recency max(.5, 1 - age in days / 180)
(``rank/boost=recency_linear``); documents before talk (``rank/boost=source``).

**Corrected** (gimli_corrected): r counts from 0, so that the best text hit scores 1 instead of .5, and the system's own
targets can be met.

Its score is a setting of ``rank.score``, which all systems use. Its eight relevance scenarios are a data set of their
own, on which every preset runs (``experiments/scenarios``).
"""

from __future__ import annotations

from typing import ClassVar

from memlab.pipeline.stage import stage
from memlab.stages.query.classify import PatternClassifier, Patterns

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
