"""Contextual headers of keys, by rules."""

from __future__ import annotations

from typing import Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SESSION, Tables, add_texts, with_text
from memlab.text.transcript import render_turns


@stage
class Header:
    """Put a header before the key (never the value): the baseline for contexts written by a model.

    It has up to four lines: the day, the speakers, the session's first user turn and the turn before the memory. The
    turns are cut, because small encoders read 256-512 tokens, key included.
    """

    reads: ClassVar = ("texts", "sessions", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    date: bool = True  # "Saturday 20 May 2023"
    speaker: bool = True  # the memory's speakers, unless the key begins with them
    first_user_turn: bool = True  # often the topic of the session
    previous_turn: bool = True  # often the question that the memory answers
    max_first_chars: Annotated[int, Field(ge=1)] = 160  # small encoders read 256 tokens, and the key itself must fit
    max_previous_chars: Annotated[int, Field(ge=1)] = 160  # the same

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with new keys."""
        memories = tables["memories"].with_columns(pl.col("turns").list.min().alias("turn"))
        turns = render_turns(tables["turns"], tables["texts"]).with_columns(
            pl.col("speaker").fill_null(pl.col("role")).alias("who"), pl.col("display_text").alias("previous"))
        opening = turns.filter(pl.col("role") == "user").group_by(SESSION, maintain_order=True).agg(
            pl.col("turn").first().alias("first"), pl.col("display_text").first().alias("opening"))
        before = turns.select(*SESSION, "turn", pl.col("previous").shift(1).over(SESSION))  # turn numbers may have gaps
        names = (memories.select("memory", *SESSION, pl.col("turns").alias("turn")).explode("turn")
                 .join(turns.select(*SESSION, "turn", "who"), on=[*SESSION, "turn"], maintain_order="left")
                 .group_by("memory", maintain_order=True)
                 .agg(pl.col("who").unique(maintain_order=True).str.join(" and ")))
        rows = (with_text(memories, tables["texts"], "key_id", "body")
                .join(opening, on=SESSION, how="left", maintain_order="left")
                .join(before, on=[*SESSION, "turn"], how="left", maintain_order="left")
                .join(names, on="memory", how="left", maintain_order="left"))
        speakers = pl.when(~pl.col("body").str.starts_with(pl.col("who") + ":")).then("who")
        first_turn = pl.when(~pl.col("turns").list.contains(pl.col("first"))).then(
            pl.lit("Conversation: ") + pl.col("opening").str.head(self.max_first_chars))
        # the turn before may be the opening
        repeats = pl.lit(self.first_user_turn) & (pl.col("previous") == pl.col("opening"))
        previous = pl.when(~repeats).then(pl.lit("Before: ") + pl.col("previous").str.head(self.max_previous_chars))
        lines = [(self.date, pl.col("said_on").dt.strftime("%A %-d %B %Y")), (self.speaker, speakers),
                 (self.first_user_turn, first_turn), (self.previous_turn, previous)]
        parts = [line for on, line in lines if on] + [pl.col("body")]
        keys = rows.select(pl.concat_str(parts, separator="\n", ignore_nulls=True)).to_series()
        ids, texts = add_texts(tables["texts"], keys)
        return Tables(memories=tables["memories"].with_columns(ids.alias("key_id")), texts=texts)
