"""Ranks of the evidence in a ranking: the labels of models that are fitted on gold, and of the oracles."""

from __future__ import annotations

from typing import Literal

import polars as pl

EvidenceLevel = Literal["session", "turn"]


def first_holders(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
                  level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, session[, turn], unit, rank): for each item of evidence, the first unit that holds it.

    Items are sessions, or turns where the turn is known (else any turn of the session counts); unit and rank are null
    if no unit holds the item. All units of a question are in its corpus, so the session number identifies a session.
    """
    ranked = ranking.select("question", "unit", "rank").join(units.select("unit", "session", "turns"), on="unit")
    if level == "session":
        items = evidence.select("question", "session").unique()
        holders = ranked.drop("turns")
        keys = ["question", "session"]
    else:
        items = evidence.select("question", "session", pl.col("turn").fill_null(-1)).unique()
        anywhere = ranked.with_columns(pl.lit(-1, pl.Int32).alias("turn")).drop("turns")
        holders = pl.concat([ranked.explode("turns").rename({"turns": "turn"}), anywhere], how="diagonal")
        keys = ["question", "session", "turn"]
    first = holders.join(items, on=keys, how="semi").sort("question", "rank").group_by(
        keys, maintain_order=True).agg(pl.col("unit").first(), pl.col("rank").first())
    return items.join(first, on=keys, how="left").sort(keys)


def smallest_k(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
               level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, complete, held): ``complete`` is the smallest K that holds all evidence, null if no K does.

    ``held`` is the smallest K that holds all evidence that the ranking holds, null if it holds none. Questions
    without evidence have no row.
    """
    return first_holders(ranking, units, evidence, level).group_by("question").agg(
        pl.when(pl.col("rank").is_null().any()).then(None).otherwise(pl.col("rank").max()).alias("complete"),
        pl.col("rank").max().alias("held")).sort("question")


def evidence_units(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, unit): the ranked units that hold evidence, a known turn or else any turn of the session."""
    ranked = ranking.select("question", "unit").join(units.select("unit", "session", "turns"), on="unit")
    known, unknown = evidence.filter(pl.col("turn").is_not_null()), evidence.filter(pl.col("turn").is_null())
    by_turn = ranked.explode("turns").join(known, left_on=["question", "session", "turns"],
                                           right_on=["question", "session", "turn"], how="semi")
    by_session = ranked.join(unknown, on=["question", "session"], how="semi")
    return pl.concat([by_turn.select("question", "unit"), by_session.select("question", "unit")]).unique().sort(
        "question", "unit")
