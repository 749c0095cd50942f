"""Searches with a single retriever, by words or by a given vector; its scores are the scores of the results."""

from __future__ import annotations

import dataclasses
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.models.protocols import Floats, Ints
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.slots import LANES, SLOTS
from memlab.pipeline.stage import Stage, name_of, stage
from memlab.pipeline.tables import Tables, empty
from memlab.stages.query.classify import Rules
from memlab.stages.query.original import Original
from memlab.stages.rank.score import lanes_of
from memlab.stages.rank.select import Fixed
from memlab.stages.rank.units import Level, rank_units
from memlab.stages.search.bm25 import BM25, BM25Okapi
from memlab.stages.search.dense import Dense
from memlab.stages.search.hits import RRF_K
from memlab.store import Store
from memlab.support.errors import MemlabError

KEPT = ("where", "relate", "prune")
"""Slots of the pipeline that such a search has too: they say what the memories are."""


@stage
class BestMatch:
    """Rank each unit by its highest score in a lane, as the search has given it."""

    reads: ClassVar = ("hits", "queries", "memories", "sessions", "turns")
    writes: ClassVar = ("units", "ranking")

    level: Level = "auto"

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``units`` (all of the level) and ``ranking``."""
        units, signals = lanes_of(tables, store, self.level, RRF_K)
        lanes = signals.columns[2:]
        return Tables(units=units, ranking=rank_units(
            signals.with_columns(pl.max_horizontal(lanes).alias("score"))) if lanes else empty("ranking"))


@stage
class ByVector(Dense):
    """Dense search for one vector of unit length in place of that of the question."""

    vector: tuple[float, ...] = ()

    def query_vectors(self, tables: Tables, store: Store, rows: Ints) -> Floats:  # noqa: ARG002  (one vector for all)
        """Return the vector for each query; raise MemlabError if the memories' vectors have another length."""
        if len(self.vector) != (dim := store.dim(self.embedder, "document")):
            raise MemlabError(f"the vector has {len(self.vector)} numbers, and the vectors of this memory have {dim}",
                              where="vector", fix="make it with the embedder of the memory's pipeline (search.dense)")
        return np.tile(np.array(self.vector, np.float32), (len(rows), 1))


def read_vector(value: Any) -> tuple[float, ...]:
    """Return a vector of unit length in the direction of a list or an array; raise MemlabError for none.

    >>> read_vector([3, 4])
    (0.6, 0.8)
    """
    vector = np.zeros(0)
    with suppress(TypeError, ValueError):
        vector = np.asarray(value, np.float64)
    length = float(np.linalg.norm(vector))
    if vector.ndim != 1 or not 0 < length < np.inf:
        raise MemlabError("it is no vector", where="vector",
                          fix="give a list of finite numbers, at least one of them not 0, or an array (n,)")
    return tuple((vector / length).tolist())


def by_words(pipeline: Pipeline) -> Pipeline:
    """Return a pipeline with only its search by words, or BM25, up to the selection."""
    lexical = _retriever(pipeline.lexical)
    return _alone(pipeline, lexical=lexical if isinstance(lexical, BM25 | BM25Okapi) else BM25())


def by_vector(pipeline: Pipeline, vector: tuple[float, ...]) -> Pipeline:
    """Return a pipeline with only its dense search, for a vector; raise MemlabError if it has no such search."""
    dense = _retriever(pipeline.dense)
    if not isinstance(dense, Dense):
        raise MemlabError(f"this pipeline stores no vectors: search/dense is {name_of(type(dense))}",
                          where="search_vector", fix="give the Memory a pipeline with a dense search")
    settings = {field.name: getattr(dense, field.name) for field in dataclasses.fields(Dense)}
    return _alone(pipeline, dense=ByVector(**settings, vector=vector))


def _retriever(search: Stage) -> Stage:
    """Return the search itself: MemoryStack's stage limits another one to some sources."""
    inner: Stage = getattr(search, "search", search)
    return inner


def _alone(pipeline: Pipeline, **search: Any) -> Pipeline:
    optional = [slot.name for slot in SLOTS if slot.optional and slot.name not in KEPT]
    level: Level = getattr(pipeline.score, "level", "auto")
    scored = pipeline.replace(query=Original(), classify=Rules(), score=BestMatch(level=level), select=Fixed())
    return scored.without(*optional, *LANES, "window", "measure", "pack").replace(**search)
