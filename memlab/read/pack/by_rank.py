"""Selected units to the context that a reader is shown: what all packs share, and the plainest of them.

The rows of a context lie in the order of what must stay: where a reader's window is smaller than the context, it
drops a question's rows from the last one upwards. ``position`` tells in which order they are shown, and is no more
than that. In ``ByRank`` the two orders are the same.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.read.render import RENDER_READS, Value, rendered
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, SESSION, Tables, add_texts
from memlab.token_counter import count_tokens

MaxTokens = Annotated[int, Field(ge=1)] | None
"""Tokens that a context may have, by the one token counter; None for no limit."""

PACK_READS = (*RENDER_READS, "ranking")
PACK_WRITES = ("context", "texts")
TIME = ["said_on", "session", "turn", "unit"]
"""Columns that put rows into the order of the talk; what has no date comes first."""


@stage
class ByRank:
    """Show the selected units in rank order, each text once.

    With ``max_tokens`` a unit that does not fit into what is left is passed over, and the next one tried: nothing is
    cut, so no evidence is shown by halves. With ``stop_at_overflow`` it is the last that is tried, as in systems that
    fill a prompt until something does not fit. ``value`` must be that of ``read.measure``.
    """

    reads: ClassVar = PACK_READS
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over, never cut
    stop_at_overflow: bool = False  # true: nothing is shown after the first that does not fit

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context (position counts from 1 in a question) and the texts that it needs."""
        rows = within(chosen(tables, self.value), self.max_tokens, self.stop_at_overflow)
        return in_order(rows, ["rank"], tables)


def chosen(tables: Tables, value: Value) -> pl.DataFrame:
    """Return what may be shown of the selected units: best first, of units that show the same text only the best.

    Columns: question, rank, unit, corpus, session, turn (the unit's first), said_on, shown (the text), tokens.
    """
    picked = tables["ranking"].filter("selected").sort("question", "rank").select("question", "rank", "unit")
    units = tables["units"].join(picked.select("unit").unique(), on="unit", how="semi")
    shown = rendered(units, tables, value).select(
        "unit", pl.col("text").alias("shown"), count_tokens(pl.col("text")).alias("tokens"))
    place = placed(units, tables)
    return (picked.join(place, on="unit", maintain_order="left").join(shown, on="unit", maintain_order="left")
            .unique(["question", "shown"], keep="first", maintain_order=True))


def placed(units: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (unit, corpus, session, turn, said_on): where and when each unit begins."""
    return units.select("unit", "corpus", "session", pl.col("turns").list.min().alias("turn")).join(
        tables["sessions"], on=SESSION, how="left", maintain_order="left")


def fitting(costs: list[int], room: int, stop: bool = False) -> list[bool]:
    """Tell which of the costs, taken in order, fit into the room.

    What does not fit is passed over; with ``stop`` nothing is taken after it.

    >>> fitting([5, 9, 4], 10), fitting([5, 9, 4], 10, stop=True)
    ([True, False, True], [True, False, False])
    """
    kept: list[bool] = []
    for cost in costs:
        kept.append(cost <= room)
        if not kept[-1] and stop:
            return kept + [False] * (len(costs) - len(kept))
        room -= cost if kept[-1] else 0
    return kept


def within(rows: pl.DataFrame, max_tokens: int | None, stop: bool = False) -> pl.DataFrame:
    """Keep, a question, the rows that fit into ``max_tokens``, tried in their order; rows of a question adjoin."""
    if max_tokens is None:
        return rows
    costs = rows.group_by("question", maintain_order=True).agg("tokens")["tokens"]
    kept = [k for cost in costs for k in fitting(cost.to_list(), max_tokens, stop)]
    return rows.filter(pl.Series(kept, dtype=pl.Boolean))


def in_order(rows: pl.DataFrame, by: list[str], tables: Tables) -> Tables:
    """Make the context: rows stay in their order, positions follow the columns ``by`` within a question."""
    at = (rows.with_row_index("row").sort("question", *by, "row")
          .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("question").alias("position"))
          .sort("row"))
    ids, texts = add_texts(tables["texts"], at["shown"])
    return Tables(context=at.with_columns(ids).select(list(SCHEMAS["context"])), texts=texts)


@stage
class ByDate:
    """Show the selected units as they were said, the oldest first, so that "then" and "now" need no searching.

    Rank decides what is shown (with ``max_tokens`` as in ``ByRank``), time only in which order.
    """

    reads: ClassVar = PACK_READS
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over, the best tried first

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs."""
        return in_order(within(chosen(tables, self.value), self.max_tokens), TIME, tables)


@stage
class BestAtEnds:
    """Show the best unit first, the second best last, the third second, and so on: the weakest lie in the middle.

    Readers overlook what stands in the middle of a long context (Liu et al., Lost in the Middle, TACL 2024). Rank
    decides what is shown (with ``max_tokens`` as in ``ByRank``).
    """

    reads: ClassVar = PACK_READS
    writes: ClassVar = PACK_WRITES
    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is passed over, the best tried first

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context and the texts that it needs."""
        rows = within(chosen(tables, self.value), self.max_tokens)
        nth = pl.int_range(pl.len()).over("question")
        # even places fill the front from the left, odd ones the back from the right
        place = pl.when(nth % 2 == 0).then(nth).otherwise(2 * pl.len().over("question") - nth).alias("place")
        return in_order(rows.with_columns(place), ["place"], tables)
