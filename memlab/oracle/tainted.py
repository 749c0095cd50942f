"""A context with the benchmark's session ids, which in LongMemEval reveal the evidence; its arm is tainted."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from memlab.read.pack.by_rank import PACK_READS, PACK_WRITES, MaxTokens, make_context, selected_texts, within_budget
from memlab.read.render import Value
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables
from memlab.text.token_counter import count_tokens


@stage(sees=("ids",))
class ShownIds:
    """Show the selected units in rank order, each under its session's own id, as RAG Memory Provider v1 did.

    An id that begins with ``answer_`` reveals evidence, so the gain of this arm over the same pack without ids is
    leakage. Every report marks it as tainted. Fields as ``memlab.read.pack.by_rank.ByRank``.
    """

    reads: ClassVar = (*PACK_READS, "ids")
    writes: ClassVar = PACK_WRITES

    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over, never cut

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs."""
        names = tables["ids"].filter(pl.col("kind") == "session").select("corpus", "session", "name")
        rows = selected_texts(tables, self.value).join(names, on=SESSION, how="left", maintain_order="left")
        named = pl.format("Session {}:\n{}", pl.col("name").fill_null("?"), "shown")
        rows = rows.with_columns(named.alias("shown")).drop("name")
        rows = rows.with_columns(count_tokens(pl.col("shown")).alias("tokens"))
        return make_context(within_budget(rows, self.max_tokens), ["rank"], tables)
