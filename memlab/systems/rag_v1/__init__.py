"""RAG Memory Provider v1: facts, entities and relationships by a model, a model as reranker, a graph block.

It reports 82.8 % of LongMemEval's answers (414 of 500, put together from several runs). ``conf/system/rag_v1.yaml``:

* write: a model reads each session once (``extract``: llm_chunked) and notes facts with resolved dates, entities
  (name, kind, summary) and relationships (source, relation, target, date). ``anchor``: rules.
* query: ``classify``: v1, one of seven types by patterns (``classify`` here).
* search: ``dense``: flat, cosine over all chunks. ``lexical``: bm25_v1, with k1 1.2, b .75 and about 150 stop words.
* rank: ``score``: rag_v1. ``rerank``: llm_listwise, the first 40 by scores of 0 to 10, with an instruction for each
  type. ``select``: fixed_20.
* read: ``graph``: block (``graph_block`` here), after the 20 units. ``prompt``: rag_v1.

**Chunks.** The facts of a session are joined and cut to 1,600 characters, of which 320 repeat the chunk before. A
chunk ends after its last sentence, else its last newline, else its last space, if that lies beyond half the size;
else anywhere. Its first line is ``# Memories from YYYY-MM-DD``.

**Score** of chunk c for question q::

    s(q, c) = .7 cos(q, c) + .3 BM25(q, c) / max BM25(q, c')

cos: cosine of the two vectors; the maximum is over all chunks c' that the question may see.

**Graph block.** Breadth first, 2 hops from the entities that the question names; at most 10 entities and 20
relationships; the summaries of an entity are joined and cut at 500 characters; one relationship for each source,
relation and target.

**Corrected** (rag_v1_corrected, the system's own list of plans): one memory for each fact, with the day it was said and
the day it happened; versions, so that superseded facts are dropped for questions about the present; a cross-encoder
in place of the model's scores; K by class (counting 40, factual 10); windows of time. rag_v1_local and
rag_v1_local_corrected need no chat model: extraction by rules, late interaction as reranker.
rag_v1_tainted shows the benchmark's session ids, as the system did; these reveal evidence.

General parts that it shares with other presets lie in ``write.extract`` (facts and their chunks), ``rank.rerank_llm``
and ``text.entity_graph``.
"""
