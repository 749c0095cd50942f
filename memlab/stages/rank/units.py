"""Units of a ranking (memories, turns or sessions), their members, and the roll-up of small units to larger ones.

A unit's number is the memory's id, or the row number of the turn (session) among all turns (sessions) sorted by corpus,
session and turn, so that every stage can derive it from the tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from memlab.models.protocols import Ints
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import DIGITS, SCHEMAS, SESSION, Tables, empty
from memlab.store import Store
from memlab.support.errors import MemlabError

Level = Literal["auto", "turn", "session", "memory"]


def finest(kinds: Iterable[str]) -> Level:
    """Return the level that ``auto`` stands for: the finest one that memories of these kinds resolve.

    That is the session for sessions alone, the memory for one kind of passage (rounds, windows), else the turn.

    >>> finest(["session.user"]), finest(["session", "turn"]), finest(["window"]), finest(["round", "window"])
    ('session', 'turn', 'memory', 'turn')
    """
    kinds = set(kinds)
    chunkings = {kind.partition(".")[0] for kind in kinds}
    if chunkings == {"session"}:
        return "session"
    return "memory" if len(kinds) == 1 and "turn" not in chunkings else "turn"


def turn_units(turns: pl.DataFrame) -> pl.DataFrame:
    """Make every turn of a ``turns`` table a unit.

    >>> turn_units(pl.DataFrame({"corpus": [0, 0], "session": [1, 0], "turn": [0, 3]},
    ...            schema_overrides=dict.fromkeys(["corpus", "session", "turn"], pl.Int32)))["session"].to_list()
    [0, 1]
    """
    placed = turns.select(*SESSION, "turn").sort(*SESSION, "turn")
    return placed.select(
        pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"), *SESSION,
        pl.col("turn").reshape((-1, 1)).arr.to_list().alias("turns"), pl.lit("turn").alias("level"),
    ) if placed.height else empty("units")


def session_units(sessions: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """Make every session a unit with all its turns."""
    members = turns.sort(*SESSION, "turn").group_by(SESSION, maintain_order=True).agg(pl.col("turn").alias("turns"))
    placed = sessions.select(SESSION).sort(SESSION).with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("unit"))
    return placed.join(members, on=SESSION, how="left", maintain_order="left").select(
        "unit", *SESSION, pl.col("turns").fill_null([]).cast(SCHEMAS["units"]["turns"]),
        pl.lit("session").alias("level"))


def memory_units(memories: pl.DataFrame) -> pl.DataFrame:
    """Make every memory a unit with the turns that it names."""
    return memories.select(pl.col("memory").alias("unit"), *SESSION, "turns", pl.lit("memory").alias("level"))


def rank_units(scored: pl.DataFrame) -> pl.DataFrame:
    """Return rows (question, unit, score, signals...) as a ``ranking``, best score first, with nothing selected.

    Scores are rounded to six decimals, so that machines whose vectors agree to 1e-7 agree on the order; ties go to the
    smaller unit.
    """
    first = ["question", "unit", "score", "rank", "selected"]
    rows = scored.with_columns(pl.col("score").round(DIGITS) + 0.0)  # -0.0 and 0.0 are one score
    return with_ranks(rows.sort("question", "score", "unit", descending=[False, True, False])).select(
        *first, pl.exclude(first))


def with_ranks(ordered: pl.DataFrame) -> pl.DataFrame:
    """Count ranks from 1 within each question, in the order of the rows, and select nothing."""
    return ordered.with_columns(
        pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("question").alias("rank"),
        pl.lit(False).alias("selected"))


def signals_of(ranking: pl.DataFrame) -> list[str]:
    """Return the signal columns of a ranking: in no schema, and not added by measuring or learning."""
    return [c for c in ranking.columns if c not in SCHEMAS["ranking"] and c not in MEASURED]


MEASURED = frozenset({"tokens", "coverage", "unreachable", "probability", "value", "shown_from"})
"""Columns of a ranking that describe a unit's cost or a cut, not its relevance."""


def kind_of(tables: Tables) -> set[str]:
    """Return the searches of a ranking and the levels of its units: for others a fit's numbers mean something else."""
    levels = tables["units"].join(tables["ranking"].select("unit"), on="unit", how="semi")["level"].unique()
    return {*signals_of(tables["ranking"]), *(f"units of level {level}" for level in levels)}


Project = Callable[[pl.DataFrame, Tables], tuple[pl.DataFrame, pl.DataFrame]]
"""Some memories, and all tables -> all units of a level, and the pairs (memory, unit) of these memories."""

FROM = ("memories", "turns", "sessions")
"""Tables from which units are made."""


@dataclass(frozen=True, eq=False)
class Members:
    """All units of a level, and those of each memory of some kinds.

    memories: (n,) ids, ascending. begins: (n + 1,) where the units of each start in numbers. numbers: (m,) of units.
    """

    units: pl.DataFrame
    memories: Ints
    begins: Ints
    numbers: Ints

    @classmethod
    def of(cls, units: pl.DataFrame, pairs: pl.DataFrame) -> Members:
        """Take the pairs (memory, unit), in any order."""
        ordered = pairs.sort("memory", "unit")
        memories, lengths = np.unique(ordered["memory"].to_numpy(), return_counts=True)
        return cls(units, memories, np.concatenate([[0], np.cumsum(lengths)]), ordered["unit"].to_numpy())

    def by_unit(self, hits: pl.DataFrame) -> pl.DataFrame:
        """Return the hits, which have ``memory``, with ``unit``: a row for each unit of each hit, as an inner join."""
        asked = hits["memory"].to_numpy()
        first, end = (np.searchsorted(self.memories, asked, side) for side in ("left", "right"))  # equal without units
        begins, lengths = self.begins[first], self.begins[end] - self.begins[first]
        ends = np.cumsum(lengths)
        numbers = self.numbers[np.arange(lengths.sum()) + np.repeat(begins - ends + lengths, lengths)]
        return hits[np.repeat(np.arange(len(asked)), lengths)].with_columns(pl.Series("unit", numbers))


def members_of(kinds: Sequence[str], project: Project, tables: Tables) -> Members:
    """Return the units of all memories of some kinds."""
    return Members.of(*project(tables["memories"].filter(pl.col("kind").is_in(kinds)), tables))


def kinds_of(memories: pl.DataFrame, some: pl.Series) -> tuple[str, ...]:
    """Return the kinds of some memories (their ids), sorted."""
    found = np.isin(memories["memory"].to_numpy(), some.to_numpy())
    return tuple(sorted(memories["kind"].filter(pl.Series(found)).unique()))


@stage
class Rollup:
    """Rank sessions (or turns) by the ranked units in them. With s a unit's score and r its rank for the question:

    * ``max``: the best s, however many units match.
    * ``dcg_sum``: sum of 1 / log2(r + 1) over its units among the first ``top_n`` (OltraMem's session score, over its
      top 10 turns). Sessions without such a unit follow below 0, by their best unit:
      1 / log2(r + 1) - 1 / log2(top_n + 1).
    * ``mean_top``: mean of its ``top`` best s, or of all if it has fewer.
    * ``logsumexp``: T log(sum of exp(s / T)), T the temperature.

    Each signal of a session is the highest of its units.
    """

    reads: ClassVar = ("ranking", "units", "sessions", "turns")
    writes: ClassVar = ("ranking", "units")

    method: Literal["max", "dcg_sum", "mean_top", "logsumexp"] = "max"
    to: Literal["session", "turn"] = "session"  # turn: for memories of several turns
    top: Annotated[int, Field(ge=1)] = 3  # mean_top: units that count
    # dcg_sum: ranks that count; null: all, which favours long sessions
    top_n: Annotated[int, Field(ge=1)] | None = 10
    temperature: Annotated[float, Field(gt=0)] = 1.0  # logsumexp: near max if small, near a count of units if large

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the ranking of the wholes, and all wholes as ``units``."""
        parts, ranking = tables["units"], tables["ranking"]
        if self.to == "turn":
            if parts["level"].eq("session").any():
                raise MemlabError("sessions cannot be rolled up to turns", where="rank/rollup, to",
                                  fix="write to: session, or rank at level turn or memory")
            wholes = turn_units(tables["turns"])
            inside = parts.explode("turns").join(
                wholes.explode("turns"), on=[*SESSION, "turns"], suffix="_whole").select("unit", "unit_whole")
        else:
            wholes = session_units(tables["sessions"], tables["turns"])
            inside = parts.join(wholes, on=SESSION, suffix="_whole").select("unit", "unit_whole")
        members = ranking.join(inside, on="unit").sort("question", "rank")
        rolled_up = members.group_by("question", pl.col("unit_whole").alias("unit"), maintain_order=True).agg(
            self._score().alias("score"), pl.col(signals_of(ranking)).max())
        return Tables(ranking=rank_units(rolled_up), units=wholes)

    def _score(self) -> pl.Expr:
        score, rank = pl.col("score"), pl.col("rank").cast(pl.Float64)
        if self.method == "max":
            return score.max()
        if self.method == "mean_top":  # members lie by rank
            return score.head(self.top).mean()
        if self.method == "logsumexp":
            peak, t = score.max(), self.temperature
            return peak + t * ((score - peak) / t).exp().sum().log()
        gain = 1 / (rank + 1).log(2)
        if self.top_n is None:
            return gain.sum()
        edge = 1 / (pl.lit(float(self.top_n)) + 1).log(2)
        return pl.when(rank.min() <= self.top_n).then(
            gain.filter(rank <= self.top_n).sum()).otherwise(gain.max() - edge)
