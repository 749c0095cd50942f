"""The full context: all sessions up to the question's day, as far as there is room."""

from __future__ import annotations

from bisect import bisect_left
from typing import ClassVar

import polars as pl

from memlab.read.pack.by_rank import CHRONOLOGICAL, PACK_WRITES, MaxTokens, make_context
from memlab.read.render import HEADER, RENDER_READS, render_units
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, SESSION, Tables, as_of
from memlab.text.token_counter import count_tokens, tokens_of
from memlab.text.transcript import TURN_SEPARATOR, render_turns


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
