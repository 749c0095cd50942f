"""Late interaction over all memories that a query may see, exact, by token vectors that are stored."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from memlab.models.protocols import Floats, Ints, TokenMatcher
from memlab.pipeline.stage import Names, name_of, spec, stage
from memlab.pipeline.tables import Tables, distinct_texts
from memlab.stages.search.hits import HitsBuilder, digits_of, of_kinds, visible_pools
from memlab.stages.search.maxsim import DocumentFrequencies, best_matches, cells, weighted_sums
from memlab.stages.search.token_pools import Places, TokenPool, token_pools
from memlab.store import Store
from memlab.store.token_vectors import Precision, TokenVectors, usual_precision

Weighting = Literal["uniform", "idf"]
Queries = Sequence[tuple[Ints, Floats]]
"""Token ids (t,) and vectors (t, dim) of each query."""


@stage
class WeightedLate:
    """MaxSim with weighted query tokens, exact, over token vectors that are stored: each text is encoded once.

    Lanes: ``<name>:<kind>``; with ``window`` > 0 also ``<name>_window:<kind>``, in which a memory has the best matches
    of those up to ``window`` places from it in its session; with ``sessions`` also ``<name>_session:<kind>``, in which
    a memory has the best matches in its session.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    matcher: TokenMatcher
    weighting: Weighting = "idf"  # uniform: plain MaxSim
    # memories on either side whose matches count in the lane late_window:<kind>; 0: no such lane
    window: Annotated[int, Field(ge=0)] = 2
    sessions: bool = True  # a lane late_session:<kind>, in which matches of the whole session count
    kinds: Names | None = None  # kinds of memories to search; null: all
    depth: Annotated[int, Field(ge=1)] = 1000
    # number format of stored token vectors: fp32; fp16, half the bytes; int8, a quarter; 4bit, an eighth; 2bit, a
    # sixteenth. int8 and below have one scale per vector more. auto: fp16 for encoders of more than 512 numbers a
    # token, as bge-m3; fp32 for smaller ones, as MiniLM
    precision: Literal["auto"] | Precision = "auto"
    name: str = "late"

    def identity(self) -> dict[str, Any]:
        """Return the settings with the number format that auto stands for."""
        settings = {field.name: spec(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"is": name_of(type(self)), **settings, "precision": self.number_format()}

    def number_format(self) -> Precision:
        """Return the number format of stored token vectors."""
        if self.precision != "auto":
            return self.precision
        return usual_precision(self.matcher.token_width() if hasattr(self.matcher, "token_width") else None)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every lane for every query."""
        queries = tables["queries"]
        asked, asked_of = distinct_texts(tables["texts"], queries["text_id"])
        questions = store.token_vectors(self.matcher, asked, "query")
        query_ids, width = queries["query"].to_numpy(), self.matcher.query_tokens
        pools = {(pool.rows.corpus, pool.rows.kind): pool for pool in self._pools(tables, store)}
        hits = HitsBuilder(digits=digits_of(self.matcher))
        for seen in visible_pools([pool.rows for pool in pools.values()], queries, tables["questions"]):
            pool = pools.pop((seen.corpus, seen.kind))  # unless it is cached, a GPU's memory is free for the next
            whole = [questions.text(asked_of[query]) for query in seen.queries]
            matrices = [(ids[:width], matrix[:width]) for ids, matrix in whole]
            for i, lane, best, scores in self._scores(pool, matrices, seen.visible, store):
                hits.add(f"{lane}:{seen.kind}", query_ids[seen.queries[i]], pool.memories[best], scores, self.depth)
        return Tables(hits=hits.frame())

    def _pools(self, tables: Tables, store: Store) -> list[TokenPool]:
        def encode(keys: pl.DataFrame) -> TokenVectors:
            return store.token_vectors(self.matcher, keys, "document", self.number_format())

        settings = (str(self.matcher.token_identity("document")), self.number_format(), self.kinds)
        return store.cached(tables, ("memories",), ("token pools", settings),
                            lambda: token_pools(tables, self.kinds, encode))

    def _scores(self, pool: TokenPool, queries: Queries, visible: Ints, store: Store  # noqa: ARG002
                ) -> Iterator[tuple[int, str, Ints, Floats]]:
        """Yield (query, lane, positions in the pool (m,), their scores (m,)), all that a query sees in each lane.

        Query i sees the first ``visible[i]`` memories of the pool.
        """
        df = DocumentFrequencies(pool.texts, pool.text_of, np.concatenate([ids for ids, _ in queries]))
        placed = pool.place_on(self.matcher)
        together = max(1, cells(placed) // max(1, len(pool.texts) * self.matcher.query_tokens))
        for first in range(0, len(queries), together):
            some = queries[first:first + together]
            best = best_matches(np.concatenate([matrix for _, matrix in some]), placed)
            ends = np.cumsum([0, *(len(ids) for ids, _ in some)])
            for i, (ids, _) in enumerate(some):
                if seen := int(visible[first + i]):
                    weight = self.weights(df.count(ids, seen), seen)
                    matches = best[pool.text_of[:seen], ends[i]:ends[i + 1]]
                    for lane, rows in self._lanes(matches, pool.places(seen, self.window)):
                        yield first + i, lane, np.arange(seen), weighted_sums(weight, rows.T)

    def weights(self, df: Ints, visible: int) -> Floats:
        """Return the weights (t,) of query tokens with these document frequencies (t,) among ``visible`` memories."""
        if self.weighting == "idf":
            return idf_weights(df.astype(np.float64), visible)
        return np.full(len(df), 1 / len(df), np.float32)

    def encode(self, tables: Tables, store: Store) -> None:
        """Store the token vectors of the memories that a search will need."""
        store.token_vectors(self.matcher, self._keys(tables), "document", self.number_format())

    def to_encode(self, tables: Tables, store: Store) -> tuple[int, int]:
        """Return the number of distinct texts whose token vectors are not stored, and of their characters."""
        asked, _ = distinct_texts(tables["texts"], tables["queries"]["text_id"])
        keys = self._keys(tables)
        missing = pl.concat([keys[store.missing_tokens(self.matcher, keys, "document", self.number_format())],
                             asked[store.missing_tokens(self.matcher, asked, "query", "fp32")]])
        return missing.height, int(missing["text"].str.len_chars().sum())

    def _keys(self, tables: Tables) -> pl.DataFrame:
        return distinct_texts(tables["texts"], of_kinds(tables["memories"], self.kinds)["key_id"])[0]

    def _lanes(self, matches: Floats, places: Places) -> Iterator[tuple[str, Floats]]:
        """Yield the name and the matches (visible, query_tokens) of each lane."""
        yield self.name, matches
        line = np.full((matches.shape[1], places.width), -np.inf, np.float32)
        line[:, places.column] = matches.T
        if self.window:
            yield f"{self.name}_window", np.ascontiguousarray(places.in_window(line)[:, places.column].T)
        if self.sessions:
            session = np.searchsorted(places.begins, places.column, side="right") - 1
            best = places.in_sessions(line, np.arange(len(places.begins)))
            yield f"{self.name}_session", np.ascontiguousarray(best[:, session].T)


def idf_weights(df: NDArray[np.float64], n: int) -> Floats:
    """Return weights (t,) that sum to 1, from document frequencies (t,) among n documents.

    >>> print(idf_weights(np.array([0.0, 10.0]), 10).round(3))
    [0.985 0.015]
    """
    idf = np.log1p((n - df + 0.5) / (df + 0.5))
    return np.asarray(idf / idf.sum(), np.float32) if len(idf) else np.empty(0, np.float32)
