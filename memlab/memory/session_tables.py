"""Tables of the sessions of a live memory: written, encoded, joined, and numbered in the order of time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import polars as pl

from memlab.data.benchmarks import Builder
from memlab.memory.sessions import Entry
from memlab.models.protocols import embedders_in
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import PER_SESSION, SLOTS
from memlab.pipeline.tables import OPTIONAL, PLACED, SCHEMAS, Tables, empty, merge_texts
from memlab.stages.search.hits import of_kinds
from memlab.stages.search.late_interaction import WeightedLate
from memlab.store import Store
from memlab.support.clock import Clock, has_offset

ENCODING = tuple(slot.name for slot in SLOTS if slot.scope != "session" and slot.phase in ("write", "search"))
"""Slots that need the vectors of keys, if their stage has an embedder."""


def write(entries: Iterable[Entry], pipeline: Pipeline, store: Store, clock: Clock) -> Tables:
    """Return the tables of some sessions under their numbers, after the stages that look at one session at a time."""
    build = Builder(clock)
    for entry in entries:
        build.session(corpus=0, session=entry.id, said_on=entry.session.said_on, name="")
        for number, turn in zip(entry.numbers, entry.session.turns):
            build.turn(corpus=0, session=entry.id, turn=number, role=turn.role, speaker=turn.speaker, text=turn.text,
                       name="")
    tables = build.tables().only(("texts", "sessions", "turns")).updated({name: empty(name) for name in OPTIONAL})
    for slot in PER_SESSION:
        stage = getattr(pipeline, slot)
        tables = tables.updated(stage.run(tables.only(stage.reads), store))
    return tables


def encode(tables: Tables, pipeline: Pipeline, store: Store) -> int:
    """Compute the vectors of the keys that searches will need; return how many keys their encoders cut."""
    cut = 0
    for slot in ENCODING:
        stage = getattr(pipeline, slot)
        for embedder in embedders_in(stage):
            memories = of_kinds(tables["memories"], getattr(stage, "kinds", None))
            keys = tables["texts"].join(memories, left_on="text_id", right_on="key_id", how="semi")
            store.vectors(embedder, keys, "document")
            cut += int(store.truncated(embedder, keys, "document").sum())
        if isinstance(stage, WeightedLate):
            stage.encode(tables, store)
    return cut


def concat(parts: Sequence[Tables]) -> Tables:
    """Concatenate parts with different sessions."""
    if len(parts) == 1:
        return parts[0]
    # Polars gives the strings of every small table a buffer of 8 KB, and a concatenated table keeps all of them. The
    # strings are copied (by adding ""), or a session would take ten times the memory of its words.
    merged = {name: pl.concat([part[name] for part in parts], rechunk=True).with_columns(
        pl.col(pl.String) + pl.lit("")) for name in ("texts", *PLACED)}
    merged["texts"] = merge_texts(merged["texts"])
    return Tables(**merged)


def without(tables: Tables, sessions: Iterable[int]) -> Tables:
    """Leave out some sessions, and the texts that no other session has."""
    left = {name: tables[name].filter(~pl.col("session").is_in(list(sessions))) for name in PLACED}
    used = pl.concat([left["turns"]["text_id"], *left["memories"].select("key_id", "value_id")]).alias("text_id")
    return Tables(texts=tables["texts"].join(used.unique().to_frame(), on="text_id", how="semi"), **left)


def chronological(tables: Tables, times: Mapping[int, datetime]) -> tuple[Tables, pl.DataFrame]:
    """Number sessions in the order of time; return the tables and (session, position), the old and the new number.

    Sessions without a date come first; sessions of one moment are in the order in which they were added. ``times`` are
    the times of the sessions; with UTC offsets they decide within a day, since the wall clock may show an hour twice.
    Memories are numbered by kind, session and their order within it.
    """
    moments = pl.DataFrame([(number, moment) for number, moment in times.items() if has_offset(moment)], orient="row",
                           schema={"session": pl.Int32, "moment": pl.Datetime("us", "UTC")})
    places = tables["sessions"].join(moments, on="session", how="left").sort(
        pl.col("said_on").dt.date(), "moment", "said_on", "session", nulls_last=False).select(
        "session", pl.int_range(pl.len(), dtype=pl.Int32).alias("position"))
    return arrange(tables, places), places


def arrange(tables: Tables, places: pl.DataFrame) -> Tables:
    """Return the tables of some sessions, renumbered by (session, position)."""
    placed = {name: _renumber(tables[name], places).select(list(SCHEMAS[name])) for name in PLACED}
    kinds = placed["memories"].select(pl.col("kind").unique(maintain_order=True)).with_row_index("block")
    placed["memories"] = (placed["memories"].join(kinds, on="kind", how="left").sort("block", "session", "memory")
                          .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("memory"))
                          .select(list(SCHEMAS["memories"])))
    placed["turns"] = placed["turns"].sort("session", "turn")
    return Tables(texts=tables["texts"], edges=empty("edges"), **placed)


def _renumber(table: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    return (table.join(places, on="session", how="left", maintain_order="left")
            .with_columns(pl.col("position").alias("session")).drop("position")
            .sort("session", maintain_order=True))
