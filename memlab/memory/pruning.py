"""Accesses to sessions, and the sessions that a memory drops when it is full."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Set
from datetime import date
from typing import Annotated, Any

import polars as pl
from pydantic import Field

from memlab.memory.database import Database
from memlab.pipeline.pipeline import apply
from memlab.pipeline.stage import Stage, stage
from memlab.pipeline.tables import Tables
from memlab.store import Store
from memlab.support.errors import MemlabError

_ADD = ("INSERT INTO accesses VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET times = times + excluded.times, "
        "last = max(last, excluded.last)")
"""Adds (session, turn, times, day) to the counts."""


class Accesses:
    """Counts by session and turn. A question is never stopped by its counts: a warning says that they are not saved."""

    def __init__(self, database: Database) -> None:
        self._database, self._warned = database, False

    def add(self, results: pl.DataFrame, on: date) -> None:
        """Count the turns of a question's results (session, turns), each turn once."""
        turns = sorted(set(results.select("session", "turns").explode("turns").drop_nulls().iter_rows()))
        try:
            if turns:
                with self._database.transaction(durable=False):
                    self._database.run(_ADD, *((*turn, 1, on.isoformat()) for turn in turns))
        except MemlabError as error:
            if not self._warned:
                warnings.warn(f"access counts are not saved: {error}", stacklevel=2)
            self._warned = True

    def forget(self, forgotten: Mapping[int, Set[int]]) -> None:
        """Drop the counts of some turns, by session, within a transaction."""
        self._database.delete_turns("accesses", forgotten)

    def frame(self) -> pl.DataFrame:
        """Return (session, turn, times, last): how often a turn was returned, and the day of the last question."""
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT session, turn, times, last FROM accesses")
        with self._database.reading():
            dated = [(*counts, date.fromisoformat(last)) for *counts, last in rows]
            return pl.DataFrame(dated, {"session": pl.Int32, "turn": pl.Int32, "times": pl.Int64, "last": pl.Date},
                                orient="row")


MemoryIds = Annotated[tuple[int, ...], Field(strict=False)]


@stage
class AccessProtected:
    """Prune by a stage, but keep ``memories``: ElizaOS's "accessed more than M times", for any stage."""

    by: Stage
    memories: MemoryIds = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The tables that the stage reads, and those that it changes."""
        return tuple(dict.fromkeys((*self.by.reads, *self.by.writes)))

    @property
    def writes(self) -> tuple[str, ...]:
        """The tables that the stage writes."""
        return self.by.writes

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the stage's tables with the protected memories, and their edges, as they were."""
        pruned = self.by.run(tables.only(self.by.reads), store)
        if not self.memories or "memories" not in pruned:
            return pruned
        removed = tables["memories"].join(pruned["memories"], on="memory", how="anti")
        restored = removed.filter(pl.col("memory").is_in(list(self.memories)))
        pruned = pruned.updated({"memories": pl.concat([pruned["memories"], restored]).sort("memory")})
        if "edges" in pruned:
            left = pruned["memories"]["memory"].implode()
            edges = tables["edges"].filter(pl.col("source").is_in(left), pl.col("target").is_in(left))
            pruned = pruned.updated({"edges": edges})
        return pruned


def renumber(rows: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """Return rows with the positions of their sessions in the order of time in place of the numbers.

    places: (session, position).
    """
    return rows.join(places, on="session").with_columns(pl.col("position").alias("session")).drop("position")


def frequently_accessed(memories: pl.DataFrame, accesses: pl.DataFrame, times: int) -> tuple[int, ...]:
    """Return the ids of memories with a turn that was returned more than ``times`` times.

    accesses: (session, turn, times), sessions numbered as in ``memories``.
    """
    frequent = accesses.filter(pl.col("times") > times)
    turns = memories.select("memory", "session", pl.col("turns").alias("turn")).explode("turn")
    return tuple(turns.join(frequent, on=["session", "turn"], how="semi")["memory"].unique().sort())


def sessions_to_prune(tables: Tables, relate: Stage, prune: Stage, store: Store) -> dict[int, set[int] | None]:
    """Return session -> the turns that are in no memory after pruning, or None where no turn of it is.

    Sessions without a memory before pruning (blank ones) stay.
    """
    tables = tables.updated(apply(relate, tables, store))
    before = tables["memories"]
    after = tables.updated(apply(prune, tables, store))["memories"]
    kept = _turns(after)
    removed = sorted(_turns(before.join(after, on="memory", how="anti")).items())
    return {session: turns - kept[session] if session in kept else None for session, turns in removed
            if session not in kept or turns - kept[session]}


def _turns(memories: pl.DataFrame) -> dict[int, set[int]]:
    rows = memories.select("session", "turns").explode("turns").group_by("session").agg(pl.col("turns").unique())
    return {session: set(turns) - {None} for session, turns in rows.iter_rows()}
