"""What the write stages made of a live memory's sessions: one session at a time, and put together as one corpus.

The stages of ``PER_SESSION`` see one session and nothing else, so that an addition costs what the session costs. Put
together, sessions are numbered in the order of time whatever the order in which they came, as a data set's are: the
tables are those that the pipeline makes of all sessions at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl

from memlab.data.build import Builder
from memlab.live.session import Entry
from memlab.pipeline import WRITTEN_BY_FEW, Pipeline
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables, empty

PER_SESSION = ("chunk", "extract", "anchor", "context")
"""Slots whose stages look at each session for itself."""

ENCODING = ("relate", "dense", "late")
"""Slots that need the vectors of keys, where their stage has an embedder."""

PLACED = ("sessions", "turns", "memories", "entities", "links")
"""Tables whose rows belong to a session."""


def write(entries: Iterable[Entry], pipeline: Pipeline, store: Store) -> Tables:
    """Return the tables of some sessions, each under its own number, with all that is made of them alone."""
    build = Builder()
    for entry in entries:
        if entry.session is None:
            continue
        build.session(corpus=0, session=entry.id, said_on=entry.session.said_on, name="")
        for number, turn in zip(entry.numbers, entry.session.turns):
            build.turn(corpus=0, session=entry.id, turn=number, role=turn.role, speaker=turn.speaker, text=turn.text,
                       name="")
    tables = build.tables().only(("texts", "sessions", "turns")).updated({name: empty(name) for name in WRITTEN_BY_FEW})
    for slot in PER_SESSION:
        stage = getattr(pipeline, slot)
        tables = tables.updated(stage.run(tables.only(stage.reads), store))
    return tables


def encode(tables: Tables, pipeline: Pipeline, store: Store) -> None:
    """Make the vectors of the keys that searching will ask for."""
    for slot in ENCODING:
        stage = getattr(pipeline, slot)
        embedder, kinds = getattr(stage, "embedder", None), getattr(stage, "kinds", None)
        if embedder is None:
            continue
        heard = pl.lit(True) if kinds is None else pl.col("kind").is_in(list(kinds))
        keys = tables["memories"].filter(heard).select(pl.col("key").alias("hash")).unique()
        store.vectors(embedder, tables["texts"].join(keys, on="hash", how="semi"), "document")


def together(parts: Sequence[Tables]) -> Tables:
    """Put parts with different sessions together, as they are."""
    if len(parts) == 1:
        return parts[0]
    names = ("texts", *PLACED)
    # Polars gives the strings of every small table a buffer of 8 KB, and a table put together keeps all of them:
    # strings are written anew (by adding nothing), or a session would take ten times the memory of its words.
    merged = {name: pl.concat([part[name] for part in parts], rechunk=True).with_columns(
        pl.col(pl.String) + pl.lit("")) for name in names}
    merged["texts"] = merged["texts"].unique("hash", keep="first", maintain_order=True)
    return Tables(**merged)


def without(tables: Tables, sessions: Iterable[int]) -> Tables:
    """Leave some sessions out, and the texts that nothing else holds."""
    stays = ~pl.col("session").is_in(list(sessions))
    left = {name: tables[name].filter(stays) for name in PLACED}
    used = pl.concat([left["turns"]["text"], left["memories"]["key"], left["memories"]["value"]]).alias("hash")
    return Tables(texts=tables["texts"].join(used.unique().to_frame(), on="hash", how="semi"), **left)


def in_time(tables: Tables) -> tuple[Tables, pl.DataFrame]:
    """Number sessions in the order of time; return the tables and (session, position), the old and the new number.

    What has no date comes first; sessions of one moment lie in the order in which they came. Memories are numbered by
    kind, session and their order within it.
    """
    places = tables["sessions"].sort("said_on", "session", nulls_last=False).select(
        "session", pl.int_range(pl.len(), dtype=pl.Int32).alias("position"))
    placed = {name: _renumbered(tables[name], places).select(list(SCHEMAS[name])) for name in PLACED}
    kinds = placed["memories"].select(pl.col("kind").unique(maintain_order=True)).with_row_index("block")
    placed["memories"] = (placed["memories"].join(kinds, on="kind", how="left").sort("block", "session", "memory")
                          .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("memory"))
                          .select(list(SCHEMAS["memories"])))
    placed["turns"] = placed["turns"].sort("session", "turn")
    return Tables(texts=tables["texts"], edges=empty("edges"), **placed), places


def _renumbered(table: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    return (table.join(places, on="session", how="left", maintain_order="left")
            .with_columns(pl.col("position").alias("session")).drop("position")
            .sort("session", maintain_order=True))
