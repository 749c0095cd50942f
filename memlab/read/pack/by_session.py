"""The selected units, put back into the sessions that they were said in."""

from __future__ import annotations

from typing import ClassVar, Literal

import polars as pl

from memlab.read.pack.by_rank import PACK_READS, PACK_WRITES, TIME, MaxTokens, chosen, in_order
from memlab.read.render import HEADER, Value
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.token_counter import count_tokens


@stage
class BySession:
    """Show the units of a session together, as they were said, under one header; sessions by best rank or by date.

    With ``max_tokens`` units are tried in rank order as in ``ByRank``; a header counts once a session. Where the
    reader's window is too small the session with the worst best rank gives way first, its last unit first, so that no
    unit loses its header.
    """

    reads: ClassVar = PACK_READS
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over, the best tried first
    order: Literal["rank", "date"] = "rank"  # of the sessions: rank (by their best unit) | date

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs; the header stands in a session's first row."""
        header = pl.col("said_on").dt.strftime(HEADER).fill_null("").alias("header")
        rows = chosen(tables, self.value).with_columns(header)
        bare = rows.with_columns(
            pl.col("shown").str.slice(pl.col("header").str.len_chars()), pl.col("tokens").alias("headed"))
        bare = bare.with_columns(count_tokens(pl.col("shown")).alias("tokens"))
        if self.max_tokens is not None:
            bare = bare.filter(_fitting(bare, self.max_tokens))
        best = pl.col("rank").min().over("question", "session").alias("best")
        told = bare.with_columns(best).sort("question", "best", "turn", "unit")
        first = pl.int_range(pl.len()).over("question", "session") == 0
        rows = told.with_columns(
            pl.when(first).then(pl.col("header") + pl.col("shown")).otherwise("shown").alias("shown"),
            pl.when(first).then("headed").otherwise("tokens").alias("tokens"))
        return in_order(rows, ["best", "turn", "unit"] if self.order == "rank" else TIME, tables)


def _fitting(rows: pl.DataFrame, max_tokens: int) -> pl.Series:
    """Tell which rows fit, tried in their order; of those kept of a session the first that was said has the header.

    A row is ``headed`` tokens long with its header, and ``tokens`` without.
    """
    kept: list[bool] = []
    room: dict[int, int] = {}
    heads: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}  # where the header stands, and what it adds there
    for question, session, turn, unit, tokens, headed in rows.select(
            "question", "session", "turn", "unit", "tokens", "headed").iter_rows():
        before = heads.get((question, session))
        own = ((-1 if turn is None else turn, unit), headed - tokens)
        head = own if before is None else min(before, own)
        left = room.get(question, max_tokens) - tokens - head[1] + (before[1] if before else 0)
        kept.append(left >= 0)
        if kept[-1]:
            room[question], heads[question, session] = left, head
    return pl.Series(kept, dtype=pl.Boolean)
