"""Contextual headers by rule: what a key says of its surroundings."""

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
    """Put a header before the key (never the value): the baseline that a written context has to beat.

    One line each, where there is something to say: the day ("Saturday 20 May 2023"), who speaks in the memory
    (unless the key begins so already), the session's first user turn and the turn before the memory, the last
    two cut to a number of characters because small encoders read 256-512 tokens, key included.
    """

    reads: ClassVar = ("texts", "sessions", "turns", "memories")
    writes: ClassVar = ("memories", "texts")
    date: bool = True  # "Saturday 20 May 2023"
    speaker: bool = True  # who speaks in the memory, unless the key begins so
    first_user_turn: bool = True  # what the session began with: its topic, most often
    previous_turn: bool = True  # what the memory answers to
    max_first_chars: Annotated[int, Field(ge=1)] = 160  # small encoders read 256 tokens, and the key itself must fit
    max_previous_chars: Annotated[int, Field(ge=1)] = 160  # the same

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002
        """Return the memories with new keys."""
        memories = tables["memories"].with_columns(pl.col("turns").list.min().alias("turn"))
        turns = render_turns(tables["turns"], tables["texts"]).with_columns(
            pl.col("speaker").fill_null(pl.col("role")).alias("who"), pl.col("display_text").alias("previous"))
        opening = turns.filter(pl.col("role") == "user").group_by(SESSION, maintain_order=True).agg(
            pl.col("turn").first().alias("first"), pl.col("display_text").first().alias("opening"))
        # the turn before: joined on its successor's number, found by order (numbers may leave gaps)
        before = turns.select(*SESSION, "turn", pl.col("previous").shift(1).over(SESSION))
        names = (memories.select("memory", *SESSION, pl.col("turns").alias("turn")).explode("turn")
                 .join(turns.select(*SESSION, "turn", "who"), on=[*SESSION, "turn"], maintain_order="left")
                 .group_by("memory", maintain_order=True).agg(pl.col("who").unique(maintain_order=True))
                 .with_columns(pl.col("who").list.join(" and ")))
        known = (with_text(memories, tables["texts"], "key_id", "body")
                 .join(opening, on=SESSION, how="left", maintain_order="left")
                 .join(before, on=[*SESSION, "turn"], how="left", maintain_order="left")
                 .join(names, on="memory", how="left", maintain_order="left"))
        spoken_by = pl.when(~pl.col("body").str.starts_with(pl.col("who") + ":")).then("who")
        opened = pl.when(~pl.col("turns").list.contains(pl.col("first"))).then(
            pl.lit("Conversation: ") + pl.col("opening").str.head(self.max_first_chars))
        # the turn before may be the opening, which is said already
        repeats = pl.lit(self.first_user_turn) & (pl.col("previous") == pl.col("opening"))
        preceded = pl.when(~repeats).then(pl.lit("Before: ") + pl.col("previous").str.head(self.max_previous_chars))
        switched = [(self.date, pl.col("said_on").dt.strftime("%A %-d %B %Y")), (self.speaker, spoken_by),
                    (self.first_user_turn, opened), (self.previous_turn, preceded)]
        parts = [line for on, line in switched if on] + [pl.col("body")]
        keys = known.select(pl.concat_str(parts, separator="\n", ignore_nulls=True)).to_series()
        ids, texts = add_texts(tables["texts"], keys)
        return Tables(memories=tables["memories"].with_columns(ids.alias("key_id")), texts=texts)
