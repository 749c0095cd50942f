"""Late interaction as a lane of its own: every memory that a query may see is scored, one lane a kind of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.errors import MemlabError
from memlab.models.protocols import Floats, Ints, PairScorer, TokenMatcher
from memlab.search.as_of import Pool, pools
from memlab.search.hits import HitsBuilder
from memlab.stage import Names, stage
from memlab.store import Store
from memlab.tables import Tables, distinct_texts, empty

MaxPairs = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Layout:
    """Every (query, memory) pair that may be seen, pool by pool, query by query; and the distinct text pairs in it.

    memories: (n,) the row in ``memories`` of each pair. each: (n,) which text pair it is.
    pairs: (m, 2) row numbers in ``asks`` and ``keys``, each text pair once.
    """

    pools: list[Pool]
    memories: Ints
    each: Ints
    asks: pl.DataFrame
    keys: pl.DataFrame
    pairs: Ints


def layout(tables: Tables, kinds: Names | None, max_pairs: int) -> Layout | None:
    """Lay out all pairs, or None where there are none; the same texts are paired once, in however many corpora.

    Raises MemlabError for an unknown kind, or where there are more than ``max_pairs`` pairs.
    """
    queries, memories, texts = tables["queries"], tables["memories"], tables["texts"]
    seen = list(pools(queries, tables["questions"], memories, kinds))
    total = int(sum(p.seen.sum() for p in seen))
    if total > max_pairs:
        raise MemlabError(f"{total:,} pairs of query and memory are more than max_pairs = {max_pairs:,}",
                          where="search.late",
                          fix="rerank a pool instead (rank/rerank=late_interaction, search/late=none), "
                              f"or set search.late.max_pairs={total}")
    if total == 0:
        return None
    asks, ask_of = distinct_texts(texts, queries["text_id"])
    keys, key_of = distinct_texts(texts, memories["key_id"])
    query_rows = np.concatenate([np.repeat(p.queries, p.seen) for p in seen])
    memory_rows = np.concatenate([p.memories[:n] for p in seen for n in p.seen.tolist()])
    codes, each = np.unique(ask_of[query_rows] * keys.height + key_of[memory_rows], return_inverse=True)
    return Layout(seen, memory_rows, each, asks, keys, np.stack(np.divmod(codes, keys.height), axis=1))


@stage
class Late:
    """Score every (query, key) pair. Corpora must be small: a pair costs a model's work.

    The same pair of texts is scored once, in however many corpora it stands. Lanes are named ``<name>:<kind>``.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    scorer: PairScorer
    kinds: Names | None = None  # every kind of memory is a lane
    depth: Annotated[int, Field(ge=1)] = 1000
    max_pairs: MaxPairs = 2_000_000  # LoCoMo's 1,986 questions x 590 turns fit; minutes on a GPU, more on a CPU
    name: str = "late"  # lanes are named late:<kind>

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query.

        Raises MemlabError for an unknown kind, or where there are more than ``max_pairs`` pairs.
        """
        plan = layout(tables, self.kinds, self.max_pairs)
        if plan is None:
            return Tables(hits=empty("hits"))
        scores = store.pair_scores(self.scorer, plan.asks, plan.keys, plan.pairs)[plan.each]
        memory_ids, query_ids = tables["memories"]["memory"].to_numpy(), tables["queries"]["query"].to_numpy()
        hits, at = HitsBuilder(), 0
        for pool in plan.pools:
            for query, seen in zip(pool.queries, pool.seen.tolist()):
                hits.add(f"{self.name}:{pool.kind}", query_ids[query], memory_ids[plan.memories[at:at + seen]],
                         scores[at:at + seen], self.depth)
                at += seen
        return Tables(hits=hits.frame())


Weighting = Literal["uniform", "idf"]


@stage
class WeightedLate:
    """MaxSim with weighted query tokens; corpora must be small, since every pair is matched.

    Lanes: ``<name>:<kind>``; with ``window`` > 0 also ``<name>_window:<kind>``, in which a memory has the best
    matches of those up to so many before and after it in its session; with ``sessions`` also
    ``<name>_session:<kind>``, in which every memory carries the score of its session.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    matcher: TokenMatcher
    weighting: Weighting = "idf"  # uniform: plain MaxSim
    # a lane late_window:<kind>: the best answer to each word up to 2 memories away; 0: no such lane
    window: Annotated[int, Field(ge=0)] = 2
    sessions: bool = True  # a lane late_session:<kind>: the best answer to each word anywhere in the session
    kinds: Names | None = None  # every kind of memory
    depth: Annotated[int, Field(ge=1)] = 1000
    max_pairs: MaxPairs = 2_000_000  # LoCoMo's 1,986 questions x 590 turns fit
    name: str = "late"

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every lane for every query."""
        plan = layout(tables, self.kinds, self.max_pairs)
        if plan is None:
            return Tables(hits=empty("hits"))
        matches = store.pair_matches(self.matcher, plan.asks, plan.keys, plan.pairs)
        query_ids, memory_ids = tables["queries"]["query"].to_numpy(), tables["memories"]["memory"].to_numpy()
        places = session_rows(tables["memories"])
        hits, at = HitsBuilder(), 0
        for pool, weights in self._weights(plan):
            for query, seen, weight in zip(pool.queries, pool.seen.tolist(), weights):
                rows = matches[plan.each[at:at + seen]]  # (seen, query_tokens)
                ids, place = memory_ids[pool.memories[:seen]], places[pool.memories[:seen]]
                for lane, best in self._views(rows, place, ids):
                    hits.add(f"{lane}:{pool.kind}", query_ids[query], ids, best @ weight, self.depth)
                at += seen
        return Tables(hits=hits.frame())

    def _views(self, rows: Floats, place: Ints, ids: Ints) -> Iterator[tuple[str, Floats]]:
        """Yield each lane's name and matches (seen, query_tokens)."""
        yield self.name, rows
        if self.window and len(rows):
            yield f"{self.name}_window", best_in_window(rows, place, ids, self.window)
        if self.sessions and len(rows):
            yield f"{self.name}_session", best_in_session(rows, place)

    def _weights(self, plan: Layout) -> Iterator[tuple[Pool, Floats]]:
        """Yield each pool with the token weights of its queries: shape (queries, query_tokens)."""
        width = self.matcher.query_tokens
        asked = self.matcher.token_ids(plan.asks["text"].to_list(), "query")
        said = self.matcher.token_ids(plan.keys["text"].to_list(), "document") if self.weighting == "idf" else []
        at = 0
        for pool in plan.pools:
            first, keys, weights = at, np.empty(0, np.int64), np.zeros((len(pool.queries), width), np.float32)
            df: dict[int, int] = {}
            for i in np.argsort(pool.seen, kind="stable"):  # what a query sees is a prefix: count each memory once
                seen, start = int(pool.seen[i]), first + int(pool.seen[:i].sum())
                pairs = plan.pairs[plan.each[start:start + seen]]
                for key in pairs[len(keys):, 1].tolist():
                    for token in set(said[key].tolist()) if said else ():
                        df[token] = df.get(token, 0) + 1
                keys = pairs[:, 1]
                if seen:
                    ids = asked[int(pairs[0, 0])][:width]
                    weights[i, :len(ids)] = self._weigh(ids, df, seen)
            at += int(pool.seen.sum())
            yield pool, weights

    def _weigh(self, ids: Ints, df: dict[int, int], n: int) -> Floats:
        if self.weighting == "uniform":
            return np.full(len(ids), 1 / max(len(ids), 1), np.float32)
        return idf_weights(np.array([df.get(t, 0) for t in ids.tolist()], np.float64), n)


def idf_weights(df: NDArray[np.float64], n: int) -> Floats:
    """Return weights (t,) that sum to 1, from document frequencies (t,) among n documents.

    >>> print(idf_weights(np.array([0.0, 10.0]), 10).round(3))
    [0.985 0.015]
    """
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    return np.asarray(idf / idf.sum(), np.float32) if len(idf) else np.empty(0, np.float32)


def session_rows(memories: pl.DataFrame) -> Ints:
    """Number the sessions of memories (n,) by corpus and session: shape (n,)."""
    both = memories.select("corpus", "session")
    return both.select(pl.struct("corpus", "session").rank("dense")).to_series().to_numpy().astype(np.int64)


def best_in_session(matches: Floats, place: Ints) -> Floats:
    """Give each memory (n,) the best match of every query token (t,) in its session ``place`` (n,): shape (n, t).

    >>> print(best_in_session(np.array([[.1, .9], [.8, .2], [.5, .5]], np.float32), np.array([3, 3, 4])))
    [[0.8 0.9]
     [0.8 0.9]
     [0.5 0.5]]
    """
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    best = np.empty_like(matches)
    best[order] = np.repeat(np.maximum.reduceat(matches[order], starts, axis=0),
                            np.diff(np.append(starts, len(place))), axis=0)
    return best


def best_in_window(matches: Floats, place: Ints, ids: Ints, reach: int) -> Floats:
    """Give each memory the best matches of those up to ``reach`` places from it in its session: shape (n, t).

    Memories of a session follow one another by id.

    >>> print(best_in_window(np.array([[1.], [2.], [3.], [9.]]), np.array([0, 0, 0, 1]), np.arange(4), 1).ravel())
    [2. 3. 3. 9.]
    """
    order = np.lexsort((ids, place))
    rows, home = matches[order], place[order]
    wide = rows.copy()
    for step in range(1, reach + 1):
        near = (home[step:] == home[:-step])[:, None]
        np.maximum(wide[step:], rows[:-step], out=wide[step:], where=near)
        np.maximum(wide[:-step], rows[step:], out=wide[:-step], where=near)
    best = np.empty_like(matches)
    best[order] = wide
    return best
