"""Further queries for the parts of a question, beside the question itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.query.decompose.rules import parts_of
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables, add_texts, with_text

READS = ("queries", "texts")
WRITES = ("queries", "texts")

Share = Annotated[float, Field(gt=0, le=1)]
"""What all sub-queries of a question weigh together, the question being 1: never more than the question."""


@stage
class RuleDecompose:
    """Add a query for each part that rules see in a question; one in which they see none stays alone.

    ``repeat`` is the control: where rules would add parts, the question itself is added as many times. A question
    with several queries is ranked by fused ranks, one with a single query by scores (``rank/score``): what the
    control gains or loses comes of that alone.
    """

    reads: ClassVar = READS
    writes: ClassVar = WRITES

    share: Share = 1.0  # what all parts weigh together; the question weighs 1, never less than they
    repeat: bool = False  # true: the control, see rules_repeat

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries with sub-queries behind them."""
        asked = worded(tables)
        parts = [parts_of(text) for text in asked]
        if self.repeat:
            parts = [[text] * len(found) for text, found in zip(asked, parts)]
        return with_parts(tables, parts, self.share)


def worded(tables: Tables) -> list[str]:
    """Return the texts of the queries, in their order."""
    return with_text(tables["queries"], tables["texts"])["text"].fill_null("").to_list()


def with_parts(tables: Tables, parts: Sequence[Sequence[str]], share: float) -> Tables:
    """Add sub-queries (kind "sub"): ``parts`` holds those of each query, which share ``share`` of its weight."""
    return with_queries(tables, parts, [share / max(len(found), 1) for found in parts], "sub")


def with_queries(tables: Tables, said: Sequence[Sequence[str]], weights: Sequence[float], kind: str) -> Tables:
    """Add queries of a kind behind all others: ``said`` holds the texts that are added for each query.

    Each of them weighs the weight of that query times its entry in ``weights``.
    """
    queries = tables["queries"]
    rows = [(question, weight * factor, text)
            for question, weight, found, factor in
            zip(queries["question"], queries["weight"].fill_null(1.0), said, weights) for text in found]
    if not rows:
        return Tables(queries=queries, texts=tables["texts"])
    first = max(queries["query"]) + 1
    subs = pl.DataFrame(rows, schema={"question": pl.Int32, "weight": pl.Float64, "text": pl.String}, orient="row")
    ids, texts = add_texts(tables["texts"], subs["text"])
    subs = subs.with_columns(
        ids, pl.int_range(first, first + pl.len(), dtype=pl.Int64).alias("query"), pl.lit(kind).alias("kind"),
        pl.lit(None, SCHEMAS["queries"]["window"]).alias("window")).select(list(SCHEMAS["queries"]))
    return Tables(queries=pl.concat([queries, subs]), texts=texts)
