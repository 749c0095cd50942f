"""Where in a ranking the evidence lies: the label of everything that is fitted on gold, and of the oracles."""

from __future__ import annotations

from typing import Literal

import polars as pl

EvidenceLevel = Literal["session", "turn"]


def found_at(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
             level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, session[, turn], unit, rank): for each item of evidence, the first unit that holds it.

    Items are sessions, or turns where the turn is known (else the session stands for it); an item that no unit
    holds has a null unit and rank. Units of a question lie in its corpus, so a session number identifies.
    """
    placed = ranking.select("question", "unit", "rank").join(units.select("unit", "session", "turns"), on="unit")
    if level == "session":
        items = evidence.select("question", "session").unique()
        held = placed.drop("turns")
        keys = ["question", "session"]
    else:
        items = evidence.select("question", "session", pl.col("turn").fill_null(-1)).unique()
        anywhere = placed.with_columns(pl.lit(-1, pl.Int32).alias("turn")).drop("turns")
        held = pl.concat([placed.explode("turns").rename({"turns": "turn"}), anywhere], how="diagonal")
        keys = ["question", "session", "turn"]
    first = held.join(items, on=keys, how="semi").sort("question", "rank").group_by(
        keys, maintain_order=True).agg(pl.col("unit").first(), pl.col("rank").first())
    return items.join(first, on=keys, how="left").sort(keys)


def complete_at(ranking: pl.DataFrame, units: pl.DataFrame, evidence: pl.DataFrame,
                level: EvidenceLevel) -> pl.DataFrame:
    """Return (question, complete, held): the smallest K that holds all evidence, null where no K does.

    ``held`` is the smallest K that holds all evidence that the ranking holds at all, null where it holds none.
    Questions without evidence are absent.
    """
    found = found_at(ranking, units, evidence, level)
    return found.group_by("question").agg(
        pl.when(pl.col("rank").is_null().any()).then(None).otherwise(pl.col("rank").max()).alias("complete"),
        pl.col("rank").max().alias("held")).sort("question")
