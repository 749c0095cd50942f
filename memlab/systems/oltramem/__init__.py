"""OltraMem: dates and pronouns resolved as a turn is written; turns vote for sessions, which are shown whole.

It reports a retrieval hit of 98 % and 70.4 % of LongMemEval's answers, and 81.2 % of LoCoMo's on 500 sampled questions.
``conf/system/oltramem.yaml``:

* write: ``chunk``: turn. ``anchor``: rules_coref, the persons of pronouns (``pronouns`` here, by the rules of
  ``coreference`` and the names in ``lexicon``), then relative dates as ISO dates (``write.anchor``).
* search: ``dense``: hnsw, ``lexical``: bm25, over turns.
* rank: ``score``: weighted. ``rollup``: dcg_sum. ``select``: fixed_3. How many sessions it shows is not published.
* read: ``measure``: session, whole sessions. ``prompt``: oltramem, one plain prompt.

**Score** of turn t, from its cosine and BM25, each min-max normalised over the turns that the question finds::

    s(t) = .7 cosine(t) + .3 BM25(t)

**Roll-up** of session S, over its turns among the first 10, r(t) being the rank of t by s, from 1::

    score(S) = sum of 1 / log2(r(t) + 1)

**Pronouns.** "He", "she" and "they" are the last named person who fits, "I" the speaker, "you" the other of two. The
turn keeps its words; a note is appended: ``[she = Julia; you = Bob]``.

There is no corrected form. The experiments that its write-up calls failed are arms of +exp=failed_experiments.
"""
