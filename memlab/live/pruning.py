"""Pruning in a live memory: what was often returned stays, whatever the technique of the slot says."""

from __future__ import annotations

from typing import Annotated

import polars as pl
from pydantic import Field

from memlab.pipeline import apply
from memlab.stage import Stage, stage
from memlab.store import Store
from memlab.tables import Tables

MemoryIds = Annotated[tuple[int, ...], Field(strict=False)]


@stage
class AccessProtected:
    """Prune by a stage, but keep these memories: ElizaOS's "accessed more than M times", for any technique."""

    by: Stage
    memories: MemoryIds = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """What the stage reads, and what it may have taken away."""
        return tuple(dict.fromkeys((*self.by.reads, *self.by.writes)))

    @property
    def writes(self) -> tuple[str, ...]:
        """What the stage writes."""
        return self.by.writes

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return what the stage does, with the spared memories and their edges as they were."""
        made = self.by.run(tables.only(self.by.reads), store)
        if not self.memories or "memories" not in made:
            return made
        kept = made["memories"]["memory"]
        back = tables["memories"].filter(pl.col("memory").is_in(list(self.memories)), ~pl.col("memory").is_in(kept))
        made = made.updated({"memories": pl.concat([made["memories"], back]).sort("memory")})
        if "edges" in made:
            here = made["memories"]["memory"].implode()
            made = made.updated({"edges": tables["edges"].filter(pl.col("source").is_in(here),
                                                                 pl.col("target").is_in(here))})
        return made


def frequently_accessed(memories: pl.DataFrame, accesses: pl.DataFrame, times: int) -> tuple[int, ...]:
    """Return the ids of memories that name a turn which was returned more than so many times.

    accesses: (session, turn, times), sessions numbered as in ``memories``.
    """
    much = accesses.filter(pl.col("times") > times).select("session", "turn")
    named = memories.select("memory", "session", pl.col("turns").alias("turn")).explode("turn")
    return tuple(named.join(much, on=["session", "turn"], how="semi")["memory"].unique().sort())


def sessions_to_prune(tables: Tables, relate: Stage, prune: Stage, store: Store) -> dict[int, set[int] | None]:
    """Return what pruning leaves nothing of: sessions (null), or the turns of one that no memory names any more.

    Sessions that were never a memory (blank ones) stay.
    """
    tables = tables.updated(apply(relate, tables, store))
    before = tables["memories"]
    after = tables.updated(apply(prune, tables, store))["memories"]
    lost = before.join(after, on="memory", how="anti")
    kept = _turns(after)
    gone: dict[int, set[int] | None] = {}
    for session, turns in sorted(_turns(lost).items()):
        left = turns - kept.get(session, set())
        if session not in kept:
            gone[session] = None
        elif left:
            gone[session] = left
    return gone


def _turns(memories: pl.DataFrame) -> dict[int, set[int]]:
    named = memories.select("session", "turns").explode("turns").group_by("session").agg(pl.col("turns").unique())
    return {session: set(turns) - {None} for session, turns in named.iter_rows()}
