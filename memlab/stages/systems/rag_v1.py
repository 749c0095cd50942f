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

General parts that it shares with other presets lie in ``memlab.stages``: ``write.extract`` (facts and their chunks),
``rank.rerank_llm`` and ``entity_graph``.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, Tables, add_texts, with_text
from memlab.pipeline.token_counter import count_tokens, tokens_of
from memlab.stages.entity_graph import Neighbourhood, graphs
from memlab.stages.query.classify import TIME_WORDS, PatternClassifier, Patterns
from memlab.stages.read.pack import MaxTokens
from memlab.store import Store

V1_TYPES: Patterns = (
    ("assistant", r"\bdid you \w+|\byou (?:\w+ )?(?:said|told|mentioned|suggested|recommended|gave|provided|listed|"
                  r"explained|described|wrote|created|shared)\b|\byour (?:earlier |previous |last )?(?:answer|reply|"
                  r"suggestions?|recommendations?|list)\b|\b(?:our|earlier|previous|last) (?:\w+ )?(?:chat|"
                  r"conversation|discussion)\b|\bwe (?:discussed|talked|chatted)\b"),
    ("preference", r"\b(?:recommend|suggest)(?:ions?|s)?\b|\b(?:advice|tips?|ideas?|thoughts)\b|\bshould i\b|"
                   r"\bwhat would i (?:like|enjoy)\b"),
    ("temporal", TIME_WORDS),
    ("update", r"\b(?:current|currently|now|nowadays|latest|newest|still|recently|anymore|these days)\b|"
               r"\bmost recent\b|\bup to date\b|\bso far\b"),
    ("multi_session", r"\bhow (?:many|much|often)\b|\b(?:total|altogether|combined|average|both|all|each|every|across|"
                      r"in common|number of)\b|\b(?:compared|difference|than)\b|\b(?:list|kinds|types)\b"),
    ("factual", r"^\W*(?:what|who|whom|whose|where|which|is|are|was|were|do|does|did|has|have|had|name)\b"),
)


@stage
class V1Types(PatternClassifier):
    """The seven query types of RAG Memory Provider v1: one class per question.

    Its names for them: temporal, knowledge-update (``update``), multi-hop (``multi_session``), preference,
    assistant-recall (``assistant``), factual, general.

    >>> V1Types.classify("How many plants did I buy?"), V1Types.classify("Tell me about Ann.")
    (('multi_session',), ('general',))
    """

    patterns: ClassVar = V1_TYPES
    default: ClassVar = "general"


ENTITIES = "People, places and things that the memories name:"
LINKS = "How they are related:"

Count = Annotated[int, Field(ge=1)]


@stage
class GraphBlock:
    """Append a block of entities and relationships to each question's context, if there are any.

    It is shown last, and dropped first if the reader's window is too small; its unit is null. Without extracted
    entities (write/extract=none) the context does not change.
    """

    reads: ClassVar = ("context", "texts", "entities", "links", "sessions", "questions")
    writes: ClassVar = ("context", "texts")

    hops: Count = 2  # v1's
    most_entities: Count = 10  # v1's
    most_links: Count = 20  # v1's
    summary_chars: Count = 500  # v1's: for all summaries of one entity together
    max_tokens: MaxTokens = None  # of the block; its last lines are left out until it fits

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context with the blocks, and the texts that they need."""
        questions = dict(with_text(tables["questions"], tables["texts"]).select("question", "text").iter_rows())
        blocks = [(question, self._block(graph.near(questions[question], self.hops, self.most_entities, self.most_links,
                                                    self.summary_chars)))
                  for question, graph in graphs(*(tables[name] for name in ("entities", "links", "sessions",
                                                                            "questions")))]
        shown = pl.DataFrame(blocks, schema={"question": pl.Int32(), "shown": pl.String()}, orient="row").filter(
            pl.col("shown") != "")
        ids, texts = add_texts(tables["texts"], shown["shown"])
        context = tables["context"]
        last = context.group_by("question").agg(pl.col("position").max())
        rows = shown.with_columns(ids).join(last, on="question", how="left", maintain_order="left").select(
            "question", (pl.col("position").fill_null(0) + 1).alias("position"),
            pl.lit(None, SCHEMAS["context"]["unit"]).alias("unit"), "text_id",
            count_tokens(pl.col("shown")).alias("tokens"))
        return Tables(context=pl.concat([context, rows]).sort("question", maintain_order=True), texts=texts)

    def _block(self, near: Neighbourhood) -> str:
        """Return the lines of a block that fit; "" if none does."""
        who = [f"- {name} ({kind}): {summary}" if summary else f"- {name} ({kind})"
               for name, kind, summary in near.entities]
        how = [f"- {r.source} | {r.relation} | {r.target}" + (f" ({r.said_on:%Y-%m-%d})" if r.said_on else "")
               for r in near.links]
        lines = [line for head, some in ((ENTITIES, who), (LINKS, how)) if some for line in (head, *some)]
        if self.max_tokens is not None:
            lines = lines[: bisect_right(range(1, len(lines) + 1), self.max_tokens,
                                         key=lambda n: tokens_of("\n".join(lines[:n])))]
        while lines and lines[-1] in (ENTITIES, LINKS):
            lines.pop()
        return "\n".join(lines)
