"""The entity graph around a question as one more item of its context: what it names, and how it is related."""

from __future__ import annotations

from bisect import bisect_right
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.read.pack.by_rank import MaxTokens
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables, add_texts, with_text
from memlab.text.entity_graph import Neighbourhood, graphs
from memlab.text.token_counter import count_tokens, tokens_of

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
