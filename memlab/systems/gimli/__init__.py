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
own, on which every preset runs (``memlab.scenarios``, data=scenarios).
"""
