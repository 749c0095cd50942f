"""Hits: what a query may see (the as-of rule), the k best by score, and the table of hits. Ties never depend on order.

By the as-of rule a query sees the memories of its corpus that were said by the day of its question. Memories are
sorted by day, so that those that a query sees are a prefix, of length ``visible``. Days count, not minutes: benchmarks
stamp evidence a few hours after the question of the same day. A memory without a date comes first (every query sees
it), and a question without a date sees everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Ints
from memlab.pipeline.tables import DIGITS, SCHEMAS
from memlab.support.errors import MemlabError, did_you_mean


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
    refuse_unknown_kinds(kinds, memories["kind"].unique().to_list())
    pools_of = (
        of_kinds(memories.with_row_index("row"), kinds)
        .select("row", "corpus", "kind", "memory", day=pl.col("said_on").dt.date())
        .sort("corpus", "kind", "day", "memory", nulls_last=False)
        .partition_by("corpus", "kind", as_dict=True, maintain_order=True)
    )
    return [MemoryPool(corpus, kind, rows["row"].to_numpy().astype(np.int64),
                       np.nan_to_num(_days(rows["day"]), nan=-np.inf))
            for (corpus, kind), rows in pools_of.items()]


def refuse_unknown_kinds(kinds: Sequence[str] | None, present: Sequence[str]) -> None:
    """Raise MemlabError for a kind that no memory has."""
    for kind in kinds or ():
        if kind not in present:
            raise MemlabError(f"no memory is of kind '{kind}'", where="search, kinds", fix=did_you_mean(kind, present))


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


Scores = NDArray[np.floating]

HALF_DIGITS = {"fp16": 3, "bf16": 2}
"""Decimals of scores of half-precision models, whose vectors depend on the batch: MiniLM's cosines move up to 4e-4 in
fp16 and 2e-3 in bf16. On LoCoMo dev, two decimals in place of six move session any@1 and all@5, turn all@10 and nDCG@10
of the default ranking by .003 at most.
"""

MATCH = 10.0**-DIGITS
"""The lowest score above 0 that a table holds: the floor of searches in which a text of score 0 is no hit."""


RRF_K = 60
"""The constant of reciprocal rank fusion (Cormack et al., SIGIR 2009) of hits."""


def reciprocal_ranks(hits: pl.DataFrame, queries: pl.DataFrame, by: Sequence[str] = ("question", "memory")
                     ) -> pl.DataFrame:
    """Return (by, score): the sum of 1 / (60 + rank) over the lanes, and over the queries if ``by`` lacks them."""
    rows = hits.join(queries.select("query", "question"), on="query").sort("query", "lane", "memory")
    return rows.group_by(by, maintain_order=True).agg((1 / (RRF_K + pl.col("rank"))).sum().round(9).alias("score"))


def first_queries(queries: pl.DataFrame) -> dict[int, int]:
    """Return question -> its first query, by question."""
    return dict(queries.group_by("question").agg(pl.col("query").min()).sort("question").iter_rows())


def digits_of(model: Any) -> int:
    """Return to how many decimals the scores of a model, or of the encoder inside it, are rounded."""
    identity = model.identity()
    formats = (identity.get("dtype"), identity.get("products"), identity.get("embedder", {}).get("dtype"))
    return min(HALF_DIGITS.get(one, DIGITS) for one in formats)


def topk_candidates(scores: Scores, depth: int, floor: float = -np.inf, digits: int = DIGITS) -> Ints:
    """Return the positions of all scores that could be among the best ``depth`` once rounded, ties included.

    Scores below ``floor`` are left out.

    >>> topk_candidates(np.array([.5, .9, .9, .1]), 1).tolist()
    [1, 2]
    """
    above = np.flatnonzero(scores >= floor)
    if depth >= len(above):
        return above
    last = np.partition(scores[above], len(above) - depth)[len(above) - depth]
    return above[scores[above] >= last - 10.0**-digits]


def topk(scores: Scores, ids: Ints, depth: int, digits: int = DIGITS) -> Ints:
    """Return the positions of the best ``depth`` scores: by rounded score, descending, then by id, ascending.

    scores: (n,); ids: (n,), distinct; returns (min(depth, n),).

    >>> topk(np.array([.5, .9, .9]), np.array([1, 3, 2]), 2).tolist()
    [2, 1]
    """
    candidates = topk_candidates(scores, depth, digits=digits)
    rounded = np.round(scores[candidates].astype(np.float64), digits)
    return candidates[np.lexsort((ids[candidates], -rounded))[:depth]]


class HitsBuilder:
    """Collects the ranked memories of one query after the other into a ``hits`` table.

    floor: the lowest score of a hit; None for no limit. digits: decimals to which scores are rounded.
    """

    def __init__(self, floor: float | None = None, digits: int = DIGITS) -> None:
        self._floor, self._digits = floor, digits
        self._lanes: list[str] = []
        self._queries: list[int] = []
        self._memories: list[Ints] = []
        self._scores: list[Scores] = []

    def add(self, lane: str, query: int, memories: Ints, scores: Scores, depth: int) -> None:
        """Rank the memories (n,) of one query in one lane by their scores (n,), and keep the best ``depth``."""
        if self._floor is not None:
            high = np.round(scores.astype(np.float64), self._digits) >= self._floor
            memories, scores = memories[high], scores[high]
        order = topk(scores, memories, depth, self._digits)
        if len(order):
            self._lanes.append(lane)
            self._queries.append(query)
            self._memories.append(memories[order])
            self._scores.append(np.round(scores[order].astype(np.float64), self._digits))

    def add_by_kind(self, lane: str, query: int, scores: Mapping[int, float], kinds: Mapping[int, str], depth: int
                    ) -> None:
        """Rank the memories of one query, memory -> score, in a lane ``<lane>:<kind>`` for each kind."""
        for kind in sorted({kinds[memory] for memory in scores}):
            ids = np.array(sorted(memory for memory in scores if kinds[memory] == kind), np.int64)
            self.add(f"{lane}:{kind}", query, ids, np.array([scores[int(i)] for i in ids]), depth)

    def frame(self) -> pl.DataFrame:
        """Return the ``hits`` table, queries in the order in which they were added, by rank; scores are rounded."""
        if not self._lanes:
            return pl.DataFrame(schema=SCHEMAS["hits"])
        counts = np.array([len(memories) for memories in self._memories])
        names = list(dict.fromkeys(self._lanes))
        codes = np.repeat([names.index(lane) for lane in self._lanes], counts)
        return pl.DataFrame(
            {
                "query": np.repeat(self._queries, counts),
                "lane": pl.Series(names).gather(codes),
                "memory": np.concatenate(self._memories),
                "score": np.concatenate(self._scores),
                "rank": np.concatenate([np.arange(1, n + 1) for n in counts]),
            },
            schema=SCHEMAS["hits"],
        )
