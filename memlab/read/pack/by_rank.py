"""Packs that turn the selected units into the context that a reader is shown, and the functions that all packs share.

The rows of a context lie in the order of priority: where a reader's window is smaller than the context, it drops a
question's rows from the last one upwards. ``position`` is the order in which they are shown. In ``ByRank`` the two
orders are the same.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.read.render import RENDER_READS, Value, render_units
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, SESSION, Tables, add_texts
from memlab.text.token_counter import count_tokens

MaxTokens = Annotated[int, Field(ge=1)] | None
"""Maximum tokens of a context, by the pipeline's token counter; None for no limit."""

PACK_READS = (*RENDER_READS, "ranking")
PACK_WRITES = ("context", "texts")
CHRONOLOGICAL = ["said_on", "session", "turn", "unit"]
"""Columns that sort rows by time; what has no date comes first."""


def selected_texts(tables: Tables, value: Value) -> pl.DataFrame:
    """Return the selected units with their texts, best first; of units with the same text only the best.

    Columns: question, rank, unit, corpus, session, turn (the unit's first), said_on, shown (the text), tokens.
    """
    selected = tables["ranking"].filter("selected").sort("question", "rank").select("question", "rank", "unit")
    units = tables["units"].join(selected.select("unit").unique(), on="unit", how="semi")
    shown = render_units(units, tables, value).select(
        "unit", pl.col("text").alias("shown"), count_tokens(pl.col("text")).alias("tokens"))
    place = units.select("unit", *SESSION, pl.col("turns").list.min().alias("turn")).join(
        tables["sessions"], on=SESSION, how="left", maintain_order="left")
    return (selected.join(place, on="unit", maintain_order="left").join(shown, on="unit", maintain_order="left")
            .unique(["question", "shown"], keep="first", maintain_order=True))


def fit_costs(costs: list[int], room: int, stop: bool = False) -> list[bool]:
    """Return which of the costs, taken in order, fit into the room.

    A cost that does not fit is skipped; with ``stop`` nothing is taken after it.

    >>> fit_costs([5, 9, 4], 10), fit_costs([5, 9, 4], 10, stop=True)
    ([True, False, True], [True, False, False])
    """
    kept: list[bool] = []
    for cost in costs:
        kept.append(cost <= room)
        room = room - cost if kept[-1] else -1 if stop else room
    return kept


def within_budget(rows: pl.DataFrame, max_tokens: int | None, stop: bool = False) -> pl.DataFrame:
    """Keep the rows of each question that fit into ``max_tokens``, tried in order; rows of a question are adjacent."""
    if max_tokens is None:
        return rows
    costs = rows.group_by("question", maintain_order=True).agg("tokens")["tokens"]
    kept = [k for cost in costs for k in fit_costs(cost.to_list(), max_tokens, stop)]
    return rows.filter(pl.Series(kept, dtype=pl.Boolean))


def make_context(rows: pl.DataFrame, by: list[str], tables: Tables) -> Tables:
    """Return context and texts: rows keep their order, positions follow the columns ``by`` within each question."""
    numbered = (rows.with_row_index("row").sort("question", *by, "row")
                .with_columns(pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("question").alias("position"))
                .sort("row"))
    ids, texts = add_texts(tables["texts"], numbered["shown"])
    return Tables(context=numbered.with_columns(ids).select(list(SCHEMAS["context"])), texts=texts)


@stage
class SelectedPack:
    """Show the selected units, each text once: rank decides which, the columns ``shown_by`` in which order.

    With ``max_tokens`` a unit that does not fit into what is left is skipped, and the next one tried. No unit is cut,
    so evidence is shown whole or not at all. ``value`` must be that of ``read.measure``.
    """

    reads: ClassVar[tuple[str, ...]] = PACK_READS
    writes: ClassVar = PACK_WRITES
    shown_by: ClassVar[list[str]] = CHRONOLOGICAL

    value: Value = "unit"
    max_tokens: MaxTokens = None  # a number: what does not fit into it is skipped, the best tried first

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the context (position counts from 1 for each question) and the texts that it needs."""
        return make_context(self.fit(selected_texts(tables, self.value)), self.shown_by, tables)

    def fit(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows, best first, that fit, with the columns of ``shown_by``."""
        return within_budget(rows, self.max_tokens)


@stage
class ByRank(SelectedPack):
    """Show the selected units in rank order.

    With ``stop_at_overflow`` the first unit that does not fit is the last that is tried, as in systems that fill a
    prompt until something does not fit.
    """

    shown_by: ClassVar = ["rank"]

    stop_at_overflow: bool = False  # true: nothing is shown after the first that does not fit

    def fit(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that fit."""
        return within_budget(rows, self.max_tokens, self.stop_at_overflow)


@stage
class ByDate(SelectedPack):
    """Show the selected units in the order of time, the oldest first, so that "then" and "now" need no searching."""


@stage
class EdgesFirst(SelectedPack):
    """Show the best unit first, the second best last, the third second, and so on: the weakest lie in the middle.

    Readers overlook what stands in the middle of a long context (Liu et al., Lost in the Middle, TACL 2024).
    """

    shown_by: ClassVar = ["place"]

    def fit(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that fit, with their place."""
        nth, count = pl.int_range(pl.len()).over("question"), pl.len().over("question")
        # even places fill the front from the left, odd ones the back from the right
        place = pl.when(nth % 2 == 0).then(nth).otherwise(2 * count - nth).alias("place")
        return within_budget(rows, self.max_tokens).with_columns(place)
