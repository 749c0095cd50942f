"""Text snippets of the top ranks of each question, and whether they hold evidence: the table of the drill-down."""

from __future__ import annotations

import polars as pl

from memlab.tables import SESSION, Tables, with_text

SHOWN_RANKS = 20
"""Ranks that the report's drill-down shows."""
MAX_CHARACTERS = 400
"""Length of a snippet."""


def snippets(ranked: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (question, rank, unit, session, turns, said_on, text, gold, selected) for the first ranks.

    ``ranked`` is a ranking with the columns session and turns of its units. The text of an unknown document of a
    foreign run is its name.
    """
    top = ranked.filter(pl.col("rank") <= SHOWN_RANKS).join(
        tables["units"].select("unit", "corpus"), on="unit").select(
        "question", "rank", "unit", "corpus", "session", "turns", "selected")
    dates = tables["sessions"].select("corpus", "session", "said_on")
    unknown = tables["ids"].filter((pl.col("kind") == "session") & (pl.col("session") < 0)).select(
        *SESSION, pl.format("no such document: {}", "name").alias("unknown"))
    return (
        top.join(_lines(top, tables), on="unit", how="left")
        .join(_gold(top, tables["evidence"]), on=["question", "unit"], how="left")
        .join(dates, on=SESSION, how="left")
        .join(unknown, on=SESSION, how="left")
        .select("question", "rank", "unit", "session", "turns", "said_on", pl.coalesce("text", "unknown").alias("text"),
                pl.col("gold").fill_null(False), "selected")
        .sort("question", "rank")
    )


def _lines(top: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (unit, text), with a line "speaker: text" for each turn."""
    lines = with_text(tables["turns"], tables["texts"]).select(
        "corpus", "session", "turn", (pl.coalesce("speaker", "role") + ": " + pl.col("text")).alias("line"))
    return (
        top.select("unit", "corpus", "session", "turns").unique("unit").explode("turns")
        .join(lines, left_on=["corpus", "session", "turns"], right_on=["corpus", "session", "turn"])
        .sort("unit", "turns")
        .group_by("unit", maintain_order=True)
        .agg(pl.col("line").str.join("\n").str.slice(0, MAX_CHARACTERS).alias("text"))
    )


def _gold(top: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Return (question, unit, gold); evidence without a turn makes every turn of its session gold."""
    by_turn = evidence.filter(pl.col("turn").is_not_null()).with_columns(pl.lit(True).alias("gold"))
    by_session = evidence.filter(pl.col("turn").is_null()).select("question", "session").unique().with_columns(
        pl.lit(True).alias("gold_session"))
    return (
        top.select("question", "unit", "session", "turns").explode("turns")
        .join(by_turn, left_on=["question", "session", "turns"], right_on=["question", "session", "turn"], how="left")
        .join(by_session, on=["question", "session"], how="left")
        .group_by("question", "unit").agg((pl.col("gold").any() | pl.col("gold_session").any()).alias("gold"))
    )
