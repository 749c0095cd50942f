"""The first ranking of units, from the hits of all queries and retrievers, or in a random order.

The hits of a question become one column per lane: those of several queries are fused, then projected from memories to
units. A memory that names several turns (a session, a window) gives its score to each of them, so that lanes of any
chunking combine at any level.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, model_validator

from memlab.data.numbering import question_digests
from memlab.pipeline.question_types import FALLBACK, first_of
from memlab.pipeline.slots import LANES
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SESSION, Tables, as_of, empty
from memlab.stages.rank.fusion import Each, Scorer, fits
from memlab.stages.rank.signals import known_classes
from memlab.stages.rank.units import (
    FROM,
    Level,
    finest,
    kinds_of,
    members_of,
    memory_units,
    rank_units,
    session_units,
    turn_units,
)
from memlab.store import Store
from memlab.support.errors import MemlabError

OF_A_ROLE = ("", "turn.user", "turn.assistant", "session.user", "session.assistant")
"""Kinds of memories that some data have none of; the empty one is all that a search has."""


@stage
class RandomScore:
    """Control: rank all units that a question may see in a random order, which depends on the question and the seed."""

    reads: ClassVar = ("questions", "memories", "sessions", "turns")
    writes: ClassVar = ("units", "ranking")

    level: Level = "auto"  # compare with arms of the same level
    seed: int = 0

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return ``units`` (all of the level) and ``ranking``; raise MemlabError for several kinds at level memory."""
        memories = tables["memories"]
        units, members = project(self.level, memories, tables)
        visible = tables["questions"].select("question", "corpus", "asked_on").join(
            memories.select("memory", "corpus", "said_on"), on="corpus").filter(as_of())
        pairs = visible.join(members, on="memory").select("question", "unit").unique().sort("question", "unit")
        digest_of = dict(question_digests(tables["questions"], tables["turns"]).iter_rows())
        sizes = pairs.group_by("question", maintain_order=True).len().iter_rows()
        chance = np.concatenate([np.zeros(0), *(np.random.default_rng([self.seed, int(digest_of[q], 16)]).random(n)
                                                for q, n in sizes)])
        return Tables(units=units, ranking=rank_units(pairs.with_columns(pl.Series("score", chance))))


@stage
class Score(Scorer):
    """Rank the units of ``level`` by the fused scores of the lanes; every unit with a hit is ranked.

    Level ``auto`` is the finest that the hits allow (``memlab.stages.rank.units.finest``). A unit's signal is the best
    score
    of its memories in a lane, and null without a hit, so that a report can tell "not found" from "found last".

    ``queries`` says what several queries of one question are. ``fused``: one list per lane (``fused_queries``), which
    then counts as one. ``summed``, for ``rrf`` alone: a list each, all in one sum over queries q and lanes l of
    w_q w_l / (rrf_k + rank of the memory for q in l) (MemoryStack, equation 2, where all w are 1).
    """

    reads: ClassVar = ("hits", "queries", "memories", "sessions", "turns")
    writes: ClassVar[tuple[str, ...]] = ("units", "ranking")

    level: Level = "auto"  # turn, session or memory; auto: the finest that the memories tell apart
    queries: Literal["fused", "summed"] = "fused"  # several queries: one list per lane, or one list each in the RRF sum

    @model_validator(mode="after")
    def _only_ranks_are_summed(self) -> Score:
        if self.queries == "summed" and self.method != "rrf":
            raise ValueError(f"queries: summed adds reciprocal ranks, and method is {self.method}; choose method: rrf")
        return self

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``units`` (all of the level) and ``ranking``."""
        units, signals = lanes_of(tables, store, self.level, self.rrf_k, self.queries == "summed")
        if signals.width == 2:
            return Tables(units=units, ranking=empty("ranking"))
        named = [*self.weights, *self.fill, *self.floors,
                 *(self.normaliser if isinstance(self.normaliser, dict) else ())]
        signals = signals.with_columns(pl.lit(None, pl.Float64).alias(name) for name in dict.fromkeys(named)
                                       if not any(fits(name, c) for c in signals.columns) and may_lack(name))
        return Tables(units=units, ranking=rank_units(self.fuse(signals, signals.columns[2:])))

    def _term(self, lane: str, each: Each) -> pl.Expr:
        if self.queries == "summed":  # the lane's column is the sum over its queries
            return self._weight(lane) * pl.col(lane).fill_null(0.0)
        return super()._term(lane, each)


def lanes_of(tables: Tables, store: Store, level: Level, rrf_k: int, summed: bool = False
             ) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all units of the level, and (question, unit) of those with a hit, with one column per lane."""
    hits = fused_queries(tables["hits"], tables["queries"], rrf_k, summed)
    lanes = hits["lane"].unique().sort()
    coded = hits.select("question", "memory", "score", pl.col("lane").cast(pl.Enum(lanes)).to_physical())
    if store.caches_indexes and tables.has_digests(FROM) and coded.height:  # else they are of this question
        kinds = kinds_of(tables["memories"], coded["memory"])
        members = store.cached(tables, FROM, ("members", level, kinds),
                               lambda: members_of(kinds, partial(project, level), tables))
        return members.units, pivot(members.by_unit(coded), lanes)
    units, pairs = project(level, tables["memories"].join(hits, on="memory", how="semi"), tables)
    return units, pivot(coded.join(pairs, on="memory"), lanes)


def may_lack(lane: str) -> bool:
    """Return whether a lane that is named may have no hits: it is then a signal without values.

    So it is with a floor or an odd question, and with memories of one role (``turn.assistant``), which says nothing
    where people talk to each other. All other names are misspelt.
    """
    search, _, kind = lane.partition(":")
    return search in LANES and kind in OF_A_ROLE


def fused_queries(hits: pl.DataFrame, queries: pl.DataFrame, rrf_k: int, always: bool = False) -> pl.DataFrame:
    """Return one score for each (question, lane, memory) from the hits of the question's queries.

    A question with one query keeps its raw scores, unless ``always``. With several, ranks are fused: sum of weight /
    (rrf_k + rank) over its queries, since scores of different queries share no scale. Hits of queries of kind "hyde",
    which are made-up answers, are lanes of their own ("hyde:dense:turn").
    """
    kinds = queries.select("query", "question", pl.col("weight").fill_null(1.0),
                           (pl.col("kind") == "hyde").fill_null(False).alias("made_up")).with_columns(
        (pl.lit(always) | (pl.len().over("question", "made_up") > 1)).alias("several"))
    rows = hits.join(kinds, on="query", how="inner").with_columns(
        pl.when("made_up").then(pl.format("hyde:{}", "lane")).otherwise("lane").alias("lane"))
    single = rows.filter(~pl.col("several")).select("question", "lane", "memory", "score")
    if single.height == rows.height:
        return single
    fused = rows.filter("several").sort("question", "lane", "memory", "query").group_by(
        "question", "lane", "memory", maintain_order=True).agg(
        (pl.col("weight") / (rrf_k + pl.col("rank"))).sum().alias("score"))
    return pl.concat([single, fused])


def project(level: Level, memories: pl.DataFrame, tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return all units of a level, and the pairs (memory, unit) of these memories."""
    if level == "auto":
        level = finest(memories["kind"].unique())
    if level == "memory":
        kinds = sorted(memories["kind"].unique())
        if len(kinds) > 1:
            raise MemlabError(f"memories of several kinds ({', '.join(kinds)}) cannot be ranked together",
                              where="rank/score, level", fix="rank at level turn or session, or search one kind")
        units = memory_units(tables["memories"].filter(pl.col("kind").is_in(kinds)))
        return units, memories.select("memory", pl.col("memory").alias("unit"))
    if level == "turn":
        units = turn_units(tables["turns"])
        left = memories.select("memory", *SESSION, pl.col("turns").alias("turn")).explode("turn")
        return units, left.join(units.explode("turns"), left_on=[*SESSION, "turn"], right_on=[*SESSION, "turns"]
                                ).select("memory", "unit")
    units = session_units(tables["sessions"], tables["turns"])
    return units, memories.select("memory", *SESSION).join(units, on=SESSION).select("memory", "unit")


def pivot(rows: pl.DataFrame, lanes: pl.Series) -> pl.DataFrame:
    """Return (question, unit) with one column per lane: the best score in rows (question, score, lane, unit), or null.

    ``lane`` is a number in ``lanes``.
    """
    questions, unit_numbers = rows["question"].to_numpy().astype(np.int64), rows["unit"].to_numpy()
    units = int(unit_numbers.max(initial=0)) + 1
    pairs, pair = np.unique(questions * units + unit_numbers, return_inverse=True)  # one number for each pair
    best = np.full((lanes.len(), len(pairs)), -np.inf)
    np.maximum.at(best, (rows["lane"].to_numpy(), pair), rows["score"].to_numpy())
    best[np.isneginf(best)] = np.nan
    return pl.DataFrame({"question": (pairs // units).astype(np.int32), "unit": pairs % units,
                         **dict(zip(lanes, best))}, nan_to_null=True)


@stage
class RoutedScore:
    """Rank as ``Score`` does, each question by the scorer of its class, or by ``usual`` if its class has no route.

    A question's class is its first in the table ``classes``; ``memlab.pipeline.question_types.FALLBACK`` names the
    class whose
    route a class without one takes. Queries of one question are fused with the ``rrf_k`` of ``usual``.
    """

    reads: ClassVar = ("hits", "queries", "memories", "sessions", "turns", "classes")
    writes: ClassVar = ("units", "ranking")

    routes: dict[str, Scorer] = Field(min_length=1)
    usual: Scorer = Scorer()
    level: Level = "auto"

    @model_validator(mode="after")
    def _classes_are_known(self) -> RoutedScore:
        known_classes(tuple(self.routes))
        return self

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return ``units`` (all of the level) and ``ranking``."""
        units, signals = lanes_of(tables, store, self.level, self.usual.rrf_k)
        lanes = signals.columns[2:]
        if not lanes:
            return Tables(units=units, ranking=empty("ranking"))
        routes = [(question, name if name in self.routes else FALLBACK.get(name, ""))
                  for question, name in first_of(tables["classes"]).items()]
        by_question = pl.DataFrame(routes, schema={"question": pl.Int32, "route": pl.String}, orient="row")
        rows = signals.join(by_question, on="question", how="left", maintain_order="left")
        scored = [scorer.fuse(rows.filter(pl.col("route") == name).drop("route"), lanes)
                  for name, scorer in self.routes.items()]
        unrouted = ~pl.col("route").is_in(list(self.routes)).fill_null(False)
        scored.append(self.usual.fuse(rows.filter(unrouted).drop("route"), lanes))
        return Tables(units=units, ranking=rank_units(pl.concat(scored)))
