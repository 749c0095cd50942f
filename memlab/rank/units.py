"""Units of a ranking (memories, turns or sessions), and the order of rankings.

A unit's number is the memory's id, or the row number of the turn (session) among all turns (sessions) sorted by corpus,
session and turn, so that every stage can derive it from the tables.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import polars as pl

from memlab.tables import DIGITS, SCHEMAS, SESSION, empty

Level = Literal["auto", "turn", "session", "memory"]


def finest(kinds: Iterable[str]) -> Level:
    """Return the level that ``auto`` stands for: the finest one that memories of these kinds tell apart.

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


def ranked(scored: pl.DataFrame) -> pl.DataFrame:
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
    """Return the signal columns of a ranking: those of no schema and not added by measuring or learning."""
    return [c for c in ranking.columns if c not in SCHEMAS["ranking"] and c not in MEASURED]


MEASURED = frozenset({"tokens", "coverage", "unreachable", "probability", "value", "shown_from", "cut_cost"})
"""Columns of a ranking that describe a unit's cost or a cut, not its relevance."""
