"""The selected units, put back into the sessions that they were said in."""

from __future__ import annotations

from typing import Literal

import polars as pl

from memlab.read.pack.by_rank import CHRONOLOGICAL, SelectedPack, make_context, selected_texts
from memlab.read.render import HEADER
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Tables
from memlab.text.token_counter import count_tokens


@stage
class BySession(SelectedPack):
    """Show the units of a session together, as they were said, under one header; sessions by best rank or by date.

    With ``max_tokens`` units are tried in rank order; a header counts once per session. Where the reader's window is
    too small, the session with the worst best rank is dropped first, its last unit first, so that no unit loses its
    header.
    """

    order: Literal["rank", "date"] = "rank"  # of the sessions: rank (by their best unit) | date

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context and the texts that it needs; the header stands in a session's first row."""
        header = pl.col("said_on").dt.strftime(HEADER).fill_null("").alias("header")
        rows = selected_texts(tables, self.value).with_columns(header).with_columns(
            pl.col("shown").str.slice(pl.col("header").str.len_chars()), pl.col("tokens").alias("with_header"))
        rows = rows.with_columns(count_tokens(pl.col("shown")).alias("tokens"))
        if self.max_tokens is not None:
            rows = rows.filter(_fit_rows(rows, self.max_tokens))
        best = pl.col("rank").min().over("question", "session").alias("best")
        rows = rows.with_columns(best).sort("question", "best", "turn", "unit")
        first = pl.int_range(pl.len()).over("question", "session") == 0
        rows = rows.with_columns(
            pl.when(first).then(pl.col("header") + pl.col("shown")).otherwise("shown").alias("shown"),
            pl.when(first).then("with_header").otherwise("tokens").alias("tokens"))
        return make_context(rows, ["best", "turn", "unit"] if self.order == "rank" else CHRONOLOGICAL, tables)


def _fit_rows(rows: pl.DataFrame, max_tokens: int) -> pl.Series:
    """Return which rows fit, tried in their order; the earliest kept row of a session carries the header.

    A row costs ``with_header`` tokens with its header, and ``tokens`` without.
    """
    kept: list[bool] = []
    room: dict[int, int] = {}
    heads: dict[tuple[int, int], tuple[tuple[int, int], int]] = {}  # where the header stands, and what it adds there
    for question, session, turn, unit, tokens, with_header in rows.select(
            "question", "session", "turn", "unit", "tokens", "with_header").iter_rows():
        before = heads.get((question, session))
        own = ((-1 if turn is None else turn, unit), with_header - tokens)
        head = own if before is None else min(before, own)
        left = room.get(question, max_tokens) - tokens - head[1] + (before[1] if before else 0)
        kept.append(left >= 0)
        if kept[-1]:
            room[question], heads[question, session] = left, head
    return pl.Series(kept, dtype=pl.Boolean)
