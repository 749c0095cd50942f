"""The full context: all that was said, as far as there is room."""

from __future__ import annotations

from typing import ClassVar

import polars as pl

from memlab.read.pack import PACK_WRITES, TIME, MaxTokens, in_order
from memlab.read.render import HEADER, RENDER_READS, rendered
from memlab.read.tokens import count_tokens
from memlab.speech import spoken
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables

_SESSION = ["corpus", "session"]


@stage
class Everything:
    """Show all sessions of the question's corpus in the order of time, whatever was retrieved.

    Nothing of a later day than the question's is shown. With ``max_tokens`` the newest stay: whole sessions go, the
    oldest first, and if not even the newest fits, its oldest turns. Where the reader's window is too small the
    oldest session gives way first.
    """

    reads: ClassVar = (*RENDER_READS, "questions")
    writes: ClassVar = PACK_WRITES
    max_tokens: MaxTokens = None

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the context, newest session first, shown oldest first; a row's unit is the first of its session."""
        rows = _newest_first(so_far(tables, whole_sessions(tables)))
        if self.max_tokens is not None:
            newest = rows.group_by("question", maintain_order=True).first().select(rows.columns)
            ends = _ends(newest.filter(pl.col("tokens") > self.max_tokens), self.max_tokens, tables)
            spent = pl.col("tokens").cum_sum().over("question")
            rows = _newest_first(pl.concat([ends, rows.filter(spent <= self.max_tokens)]))
        return in_order(rows, TIME, tables)


def so_far(tables: Tables, rows: pl.DataFrame) -> pl.DataFrame:
    """Pair each question with the rows of its corpus that were said no later than on the day it was asked.

    A row without a date is always there, and a question without one sees everything.
    """
    asked = tables["questions"].select("question", "corpus", "asked_on").join(rows, on="corpus")
    late = pl.col("said_on").dt.date() > pl.col("asked_on").dt.date()
    return asked.filter(~late.fill_null(False)).drop("asked_on")


def whole_sessions(tables: Tables) -> pl.DataFrame:
    """Return every session that says something: corpus, session, said_on, turn, unit, shown, tokens.

    ``unit`` is the smallest unit that lies in the session, so that what is shown can be traced to it; null where no
    unit does.
    """
    said = tables["turns"].select(_SESSION).unique().sort(_SESSION)
    units = said.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("nth"), *_SESSION)
    no_turns = pl.lit([], SCHEMAS["units"]["turns"]).alias("turns")
    standing = units.select(pl.col("nth").alias("unit"), *_SESSION, no_turns, pl.lit("session").alias("level"))
    shown = rendered(standing, tables, "session").select(pl.col("unit").alias("nth"), pl.col("text").alias("shown"))
    first = tables["units"].group_by(_SESSION).agg(pl.col("unit").min())
    return (units.join(shown, on="nth").join(first, on=_SESSION, how="left")
            .join(tables["sessions"], on=_SESSION, how="left").sort(_SESSION)
            .select(*_SESSION, "said_on", pl.lit(0, pl.Int32).alias("turn"), "unit", "shown",
                    count_tokens(pl.col("shown")).alias("tokens")))


def _newest_first(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.sort("question", "said_on", "session", descending=[False, True, True], nulls_last=True)


def _ends(rows: pl.DataFrame, max_tokens: int, tables: Tables) -> pl.DataFrame:
    """Cut sessions to their last turns: as many as fit, with the header, into ``max_tokens``; maybe none.

    The unit of a row is the smallest that covers a turn that is left.
    """
    header = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    lines = spoken(tables["turns"].join(rows.select(_SESSION).unique(), on=_SESSION, how="semi"), tables["texts"])
    after = count_tokens(pl.col("line")).cum_sum(reverse=True).over(_SESSION)
    dated = lines.with_columns(after.alias("after")).join(rows.select(*_SESSION, "said_on").unique(), on=_SESSION)
    kept = dated.filter(pl.col("after") + count_tokens(header) <= max_tokens)
    named = kept.group_by(_SESSION).agg(pl.col("turn").alias("turns")).sort(_SESSION)
    units = named.select(pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"), *_SESSION, "turns",
                         pl.lit("turn").alias("level"))
    shown = units.join(rendered(units, tables, "turn"), on="unit").select(
        *_SESSION, pl.col("text").alias("shown"), count_tokens(pl.col("text")).alias("tokens"))
    first = named.explode("turns").join(tables["units"].explode("turns"), on=[*_SESSION, "turns"]).group_by(
        _SESSION).agg(pl.col("unit").min())
    cut = shown.join(first, on=_SESSION, how="left")
    return rows.drop("shown", "tokens", "unit").join(cut, on=_SESSION).select(rows.columns)
