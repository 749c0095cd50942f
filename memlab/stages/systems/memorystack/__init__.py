"""MemoryStack: typed facts, relations between them, five detectors of question types, four signals fused.

It reports 92.8 % of LongMemEval-S's answers, by its own lenient judge. ``conf/system/memorystack.yaml``:

* write: ``extract``: llm_replace, typed facts. ``relate``: memorystack (``relations`` and ``single_value`` here).
* query: ``classify``: memorystack, every detector that fires (``classify``). ``expand``: llm_synonyms.
* search: ``dense`` and ``lexical``: memorystack (``search`` here), 30 hits each; for questions about the assistant's
  words among these alone. ``neighbours``: relations, one more list for a question.
* rank: ``score``: memorystack. ``boost``: memorystack (with ``cross_session``): x 1.3 preference, x 1.4 assistant,
  x 1.35 for other sessions than the first hit's. ``rerank``: memorystack (``rerank``), the first 20, each cut at 200
  characters. ``fuse``: memorystack. ``select``: fixed_15, of 30 retrieved.
* read: ``prompt``: memorystack. Its judge: judge=memorystack (``judge``).

**Equation (2)**, score of memory m over all queries q, the question and its paraphrases::

    S(m) = sum over q of 1 / (60 + dense rank of m for q) + 1 / (60 + sparse rank of m for q)

**Relations**, from a memory to earlier ones: FOLLOWS (confidence 1), RELATED_TO (cosine >= .85), SAME_TOPIC
(cosine >= .90), ELABORATES (longer, with more than half of the other's key terms; .8), CONTRADICTS (a denial, or
another value of a slot with one value at a time), and with it SUPERSEDES, d days later::

    confidence(d) = .75 + .20 min(d, 60) / 60          relation(m) = sum over edges of type weight x confidence

The last three need a cosine >= .85. The growth in a straight line and the type weights are ours.

**Fusion**, where S'(m) is S(m) after the boosts, and 30 is a time constant, not a half-life::

    F(m) = .50 S'(m) + .20 relation(m) + .10 exp(-age in days / 30) + .20 rerank(m)

rerank is in [0, 1], and .3 for memories that the model did not see. Age counts from now. S is about .03 a query,
relation has no bound, and the others lie in [0, 1], so the stated weights mean little.

**Corrected** (memorystack_corrected): all four signals min-max normalised, ages by the question's date, whole memories
before the reranker, relations without the gate of .85. memorystack_fast and memorystack_fast_corrected ask no model:
facts and paraphrases by rules, no reranker, weights .50, .20 and .10.
"""
