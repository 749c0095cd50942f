"""The as-of rule of the searches: a query sees the memories of its corpus that were said by the day of its question.

Memories are sorted by day, so that those that a query sees are a prefix, of length ``visible``. Days count, not
minutes: benchmarks stamp evidence a few hours after the question of the same day. A memory without a date comes first
(every query sees it), and a question without a date sees everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError, did_you_mean
from memlab.models.protocols import Ints


@dataclass(frozen=True)
class MemoryPool:
    """The memories of one kind in one corpus.

    memories: (n,) row numbers in ``memories``, by day said, then by memory id.
    days: (n,) the day of each, since the epoch; minus infinity where there is no date.
    """

    corpus: int
    kind: str
    memories: Ints
    days: NDArray[np.float64]


@dataclass(frozen=True)
class VisiblePool:
    """The memories of one kind in one corpus, and the queries put to them.

    memories: (n,) row numbers in ``memories``, by day said, then by memory id.
    queries: (q,) row numbers in ``queries``.
    visible: (q,) query i sees ``memories[:visible[i]]`` and nothing else.
    """

    corpus: int
    kind: str
    memories: Ints
    queries: Ints
    visible: Ints


def of_kinds(memories: pl.DataFrame, kinds: Sequence[str] | None) -> pl.DataFrame:
    """Return the memories of these kinds; None means every kind there is."""
    return memories if kinds is None else memories.filter(pl.col("kind").is_in(list(kinds)))


def pools(queries: pl.DataFrame, questions: pl.DataFrame, memories: pl.DataFrame,
          kinds: Sequence[str] | None = None) -> Iterator[VisiblePool]:
    """Yield a pool for each (corpus, kind) that has memories and queries, in ascending order.

    ``kinds`` of None means every kind there is. Raises MemlabError for a kind that no memory has.
    """
    yield from visible_pools(memory_pools(memories, kinds), queries, questions)


def memory_pools(memories: pl.DataFrame, kinds: Sequence[str] | None = None) -> list[MemoryPool]:
    """Return a pool for each (corpus, kind) that has memories, in ascending order.

    ``kinds`` of None means every kind there is. Raises MemlabError for a kind that no memory has.
    """
    if memories.is_empty():
        return []
    present = memories["kind"].unique().to_list()
    for kind in kinds or ():
        if kind not in present:
            raise MemlabError(f"no memory is of kind '{kind}'", where="search, kinds", fix=did_you_mean(kind, present))
    pools_of = (
        of_kinds(memories.with_row_index("row"), kinds)
        .select("row", "corpus", "kind", "memory", day=pl.col("said_on").dt.date())
        .sort("corpus", "kind", "day", "memory", nulls_last=False)
        .partition_by("corpus", "kind", as_dict=True, maintain_order=True)
    )
    return [MemoryPool(corpus, kind, rows["row"].to_numpy().astype(np.int64),
                       np.nan_to_num(_days(rows["day"]), nan=-np.inf))
            for (corpus, kind), rows in pools_of.items()]


def visible_pools(searched: Iterable[MemoryPool], queries: pl.DataFrame, questions: pl.DataFrame
                  ) -> Iterator[VisiblePool]:
    """Yield each pool whose corpus has queries, with these."""
    queries_of = (
        queries.with_row_index("row")
        .join(questions.select("question", "corpus", day=pl.col("asked_on").dt.date()), on="question")
        .sort("row")
        .partition_by("corpus", as_dict=True)
    )
    for pool in searched:
        if (pool.corpus,) not in queries_of:
            continue
        asked = queries_of[(pool.corpus,)]
        cutoffs = np.nan_to_num(_days(asked["day"]), nan=np.inf)
        yield VisiblePool(
            pool.corpus, pool.kind, pool.memories,
            queries=asked["row"].to_numpy().astype(np.int64),
            visible=np.searchsorted(pool.days, cutoffs, side="right").astype(np.int64),
        )


def _days(dates: pl.Series) -> np.ndarray:
    """Return days since the epoch (n,), not-a-number where there is no date."""
    return dates.to_physical().cast(pl.Float64).fill_null(float("nan")).to_numpy()
