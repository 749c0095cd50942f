"""Sub-queries for the parts of a question, beside the question itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.query.decompose.rules import parts_of
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables, add_texts, with_text

Share = Annotated[float, Field(gt=0, le=1)]
"""The weight of all sub-queries of a question together; the question has weight 1."""


class QueryAdder:
    """Base of the stages that add queries."""

    reads: ClassVar = ("queries", "texts")
    writes: ClassVar = ("queries", "texts")


@stage
class RuleDecompose(QueryAdder):
    """Add a query for each part that rules find in a question.

    ``repeat`` is a control that adds the question itself in place of each part. A question with several queries is
    ranked by fused ranks, one with a single query by scores (``rank/score``); the control shows the effect of that.
    """

    share: Share = 1.0
    repeat: bool = False  # true: the control

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries and their sub-queries."""
        texts = query_texts(tables)
        parts = [parts_of(text) for text in texts]
        if self.repeat:
            parts = [[text] * len(own) for text, own in zip(texts, parts)]
        return add_parts(tables, parts, self.share)


def query_texts(tables: Tables) -> list[str]:
    """Return the texts of the queries, in their order."""
    return with_text(tables["queries"], tables["texts"])["text"].fill_null("").to_list()


def add_parts(tables: Tables, parts: Sequence[Sequence[str]], share: float) -> Tables:
    """Add sub-queries (kind "sub"): ``parts`` has those of each query, which divide ``share`` of its weight."""
    return add_queries(tables, parts, [share / max(len(own), 1) for own in parts], "sub")


def add_queries(tables: Tables, added: Sequence[Sequence[str]], factors: Sequence[float], kind: str) -> Tables:
    """Add queries of a kind behind all others: the texts ``added`` for each query, with its weight times its factor."""
    queries = tables["queries"]
    rows = [(question, weight * factor, text)
            for question, weight, texts, factor in
            zip(queries["question"], queries["weight"].fill_null(1.0), added, factors) for text in texts]
    if not rows:
        return Tables(queries=queries, texts=tables["texts"])
    first = max(queries["query"]) + 1
    subs = pl.DataFrame(rows, schema={"question": pl.Int32, "weight": pl.Float64, "text": pl.String}, orient="row")
    ids, texts = add_texts(tables["texts"], subs["text"])
    subs = subs.with_columns(
        ids, pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("query"), pl.lit(kind).alias("kind"),
        pl.lit(None, SCHEMAS["queries"]["window"]).alias("window")).select(list(SCHEMAS["queries"]))
    return Tables(queries=pl.concat([queries, subs]), texts=texts)
