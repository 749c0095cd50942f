"""Packs: the selected units as the context that a reader is shown, by rank or by date, or all sessions.

The rows of a context lie in the order of priority: where a reader's window is smaller than the context, it drops a
question's rows from the last one upwards. ``position`` is the order in which they are shown. In ``ByRank`` the two
orders are the same.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, SESSION, Tables, add_texts, as_of
from memlab.pipeline.token_counter import count_tokens, tokens_of
from memlab.pipeline.transcript import TURN_SEPARATOR, render_turns
from memlab.stages.read.prompt import HEADER, RENDER_READS, Value, render_units
from memlab.store import Store

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
class FullContext:
    """Show all sessions of the question's corpus up to the question's day in the order of time.

    With ``max_tokens`` the newest stay: whole sessions are dropped, the oldest first, and if not even the newest
    fits, its oldest turns. Where the reader's window is too small, the oldest session is dropped first.
    """

    reads: ClassVar = (*RENDER_READS, "questions")
    writes: ClassVar = PACK_WRITES
    max_tokens: MaxTokens = None  # null: only the reader's window limits it; in either case the newest stay

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context, newest session first, shown oldest first; a row's unit is the first of its session."""
        rows = newest_first(visible_rows(tables, session_texts(tables)))
        if self.max_tokens is not None:
            newest = rows.group_by("question", maintain_order=True).first().select(rows.columns)
            long = newest.filter(pl.col("tokens") > self.max_tokens).with_columns(pl.lit(self.max_tokens).alias("room"))
            spent = pl.col("tokens").cum_sum().over("question")
            rows = newest_first(pl.concat([last_turns(long, tables), rows.filter(spent <= self.max_tokens)]))
        return make_context(rows, CHRONOLOGICAL, tables)


def visible_rows(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    """Pair each question with the rows of its corpus that were said no later than on the day of the question.

    A row without a date is always visible, and a question without one sees everything.
    """
    pairs = tables["questions"].select("question", "corpus", "asked_on").join(rows, on="corpus")
    return pairs.filter(as_of()).drop("asked_on")


def session_texts(tables: Tables) -> pl.DataFrame:
    """Return every session that has a turn: corpus, session, said_on, turn, unit, shown, tokens.

    ``unit`` is the session's smallest unit, so that the text can be traced to it; null where it has none.
    """
    units = tables["turns"].select(SESSION).unique().sort(SESSION).select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("nth"), *SESSION)
    no_turns = pl.lit([], SCHEMAS["units"]["turns"]).alias("turns")
    sessions = units.select(pl.col("nth").alias("unit"), *SESSION, no_turns, pl.lit("session").alias("level"))
    shown = render_units(sessions, tables, "session").select(pl.col("unit").alias("nth"), pl.col("text").alias("shown"))
    first = tables["units"].group_by(SESSION).agg(pl.col("unit").min())
    return (units.join(shown, on="nth").join(first, on=SESSION, how="left")
            .join(tables["sessions"], on=SESSION, how="left").sort(SESSION)
            .select(*SESSION, "said_on", pl.lit(0, pl.Int32).alias("turn"), "unit", "shown",
                    count_tokens(pl.col("shown")).alias("tokens")))


def newest_first(rows: pl.DataFrame) -> pl.DataFrame:
    """Sort the sessions of each question by time, the newest first; those without a date come last."""
    return rows.sort("question", "said_on", "session", descending=[False, True, True], nulls_last=True)


def last_turns(rows: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Cut sessions to the last turns that fit, with the header, into their ``room`` (a column); drop what has none.

    Columns as in ``rows``, without ``room``. The unit of a row is the smallest that covers one of its turns.
    """
    covered = tables["turns"].join(rows.select(SESSION).unique(), on=SESSION, how="semi")
    lines = render_turns(covered, tables["texts"]).group_by(SESSION, maintain_order=True).agg("turn", "display_text")
    header = pl.col("said_on").dt.strftime(HEADER).fill_null("").alias("header")
    whole = rows.drop("turn", "unit", "shown", "tokens").join(lines, on=SESSION, maintain_order="left")
    shown, turns = [], []
    for day, parts, numbers, room in whole.select(header, "display_text", "turn", "room").iter_rows():
        first = bisect_left(range(len(parts)), True,
                            key=lambda n: tokens_of(day + TURN_SEPARATOR.join(parts[n:])) <= room)
        shown.append(day + TURN_SEPARATOR.join(parts[first:]))
        turns.append(numbers[first:])
    cut = whole.with_columns(pl.Series("shown", shown, pl.String), pl.Series("turn", turns, SCHEMAS["units"]["turns"]))
    left = cut.filter(pl.col("turn").list.len() > 0).with_columns(count_tokens(pl.col("shown")).alias("tokens"))
    covering = tables["units"].select(*SESSION, "unit", pl.col("turns").alias("turn")).explode("turn")
    return (left.select("question", *SESSION, "turn").explode("turn")
            .join(covering, on=[*SESSION, "turn"], how="left")
            .group_by("question", *SESSION).agg(pl.col("turn").min(), pl.col("unit").min())
            .join(left.drop("turn"), on=["question", *SESSION]).select(c for c in rows.columns if c != "room"))
