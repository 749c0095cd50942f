"""ElizaOS's memory and RAG: documents of 1,000 characters, RRF, and a threshold that RRF cannot reach.

``conf/system/elizaos.yaml``:

* write: ``chunk``: elizaos, pieces of 1,000 characters with an overlap of 200 (``splitter`` here).
* search: ``dense``: flat, cosine of at least .5. ``lexical``: bm25. Each gives 2 x 20 candidates.
* rank: ``score``: rrf, with a threshold of .6. ``select``: fixed_20.
* read: ``pack``: windows (``budget`` here). ``prompt``: elizaos.

**Splitter.** Separators are the blank line, the newline, the sentence (". ") and the space, but the published loop
stops at the first that yields anything: a paragraph longer than the size stays whole. Segments are joined while they
fit; the next piece begins with the last 200 characters of the one before, cut anywhere.

**Score** of piece m::

    s(m) = 1 / (60 + dense rank of m) + 1 / (60 + lexical rank of m)      kept if s(m) > .6

Ranks count from 1, so s is 2 / 61 = .033 at most, and the filter removes every hit.

**Context.** Of B - 2,000 - 500 tokens (B the budget, less system prompt and message) one half goes to the recent
history, .3 to retrieved pieces and .2 to providers, here the block of ``read/graph``. Filling stops at the first piece
that does not fit.

**Corrected** (elizaos_corrected): the splitter recurses (``write.chunk.length.Recursive`` with the same separators); no
threshold on RRF, so that the semantic search's cosine of .5 is the only filter; a piece that does not fit is skipped.
"""
