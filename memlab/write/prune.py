"""What is forgotten: memories that are old, unless they are important or have often been asked for."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, ClassVar

import polars as pl
from pydantic import Field

from memlab.stage import stage
from memlab.tables import Tables
from memlab.write.prune_importance import importance

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class Age:
    """ElizaOS: memories older than ``days`` are removed, unless of high importance or accessed often.

    Age counts to the day of the corpus's earliest question: the only day that every question has reached. A later
    one (of the newest session, of another question) would remove what an earlier question may still have, by what
    was not yet known then. So what is removed is too old for all questions; where a corpus is asked on several days,
    later questions keep some memories that a system pruning daily would have dropped. Benchmarks ask on one day a
    corpus, where this is exact. A corpus without dated questions counts to its newest session.

    Memories of importance ``important`` and more stay (its own where an extractor gave one, else by rule,
    ``memlab.write.prune_importance``). Access counts exist in a live memory alone; here nothing was accessed before.
    """

    reads: ClassVar = ("questions", "texts", "memories", "edges")
    writes: ClassVar = ("memories", "edges")
    days: Annotated[int, Field(ge=1)] = 90
    important: Annotated[float, Field(ge=0)] = 0.6

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the memories that stay, and the edges between them."""
        memories = tables["memories"]
        asked = tables["questions"].group_by("corpus").agg(pl.col("asked_on").min())
        now = memories.select("corpus", "said_on").join(asked, on="corpus", how="left", maintain_order="left").select(
            pl.coalesce("asked_on", pl.col("said_on").max().over("corpus")))["asked_on"]
        weight = importance(memories, tables["texts"])
        return without(tables, removable(memories, now, self.days, weight >= self.important))


def removable(memories: pl.DataFrame, now: datetime | pl.Series, days: int, important: pl.Series,
              accessed: pl.Series | None = None, times: int = 0) -> pl.Series:
    """Tell which memories may be removed, (n,).

    Those said more than ``days`` days before ``now`` (a date and time, or one a memory), by calendar days, that are
    not ``important`` (n,) and were accessed (n,) at most ``times`` times. Undated memories stay.

    >>> from memlab.tables import frame
    >>> said = frame("memories", {"memory": [0, 1, 2], "said_on": [datetime(2023, 1, d) for d in (1, 2, 2)]})
    >>> removable(said, datetime(2023, 1, 31), 28, pl.Series([True, False, False]), pl.Series([0, 0, 3]), 2).to_list()
    [False, True, False]
    """
    today = now if isinstance(now, pl.Series) else pl.repeat(now, memories.height, dtype=pl.Datetime("us"), eager=True)
    age = (today.dt.date() - memories["said_on"].dt.date()).dt.total_days()
    seldom = True if accessed is None else accessed.fill_null(0) <= times
    return ((age > days).fill_null(False) & ~important.fill_null(False) & seldom).alias("removable")


def without(tables: Tables, gone: pl.Series) -> Tables:
    """Return memories and edges without the memories that are gone, (n,); the others keep their ids."""
    kept = tables["memories"].filter(~gone)
    edges = tables["edges"].filter(pl.col("source").is_in(kept["memory"].implode()),
                                   pl.col("target").is_in(kept["memory"].implode()))
    return Tables(memories=kept, edges=edges)
