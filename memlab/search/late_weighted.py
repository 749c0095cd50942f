"""Late interaction that counts rare words more: over single memories, their neighbours, and whole sessions.

    score(q, p) = sum over tokens i of q of  w_i  max over tokens j of p of  <q_i, p_j>,   w_i >= 0, summing to 1

Plain MaxSim (Khattab & Zaharia, ColBERT, SIGIR 2020) gives every query token the same say, so that "when did" and
"the" outvote the name that matters. Here w_i is proportional to the token's inverse document frequency among the
memories that the query may see, log(1 + (n - df + .5) / (df + .5)), the form that BM25 uses in Lucene.

A session's score takes, for each query token, its best answer anywhere in the session before they are added: a
question whose parts are answered in different turns finds the session that answers all of them. A window does the
same with a memory and its neighbours: a reply is found by the words of what it replies to. Neither costs a model's
work, since the matches of single memories are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.protocols import Floats, Ints, TokenMatcher
from memlab.search.eligible import Pool
from memlab.search.hits import HitsBuilder
from memlab.search.late import Layout, MaxPairs, layout
from memlab.stage import Names, stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store

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
    weighting: Weighting = "idf"
    window: Annotated[int, Field(ge=0)] = 2
    sessions: bool = True
    kinds: Names | None = None
    depth: Annotated[int, Field(ge=1)] = 1000
    max_pairs: MaxPairs = 2_000_000
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
