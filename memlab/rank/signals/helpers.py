"""Shared parts of signals: memories, places and days of ranked units, and the questions that a signal is for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import polars as pl
from pydantic import AfterValidator

from memlab.errors import did_you_mean
from memlab.question_types import VOCABULARY
from memlab.stage import Names
from memlab.tables import SESSION, Tables, as_of

PAIR = ["question", "unit"]


def known_classes(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names if all are classes of questions (``memlab.question_types``); raise ValueError otherwise."""
    for name in names:
        if name not in VOCABULARY:
            raise ValueError(f"no class of questions is called '{name}'; {did_you_mean(name, VOCABULARY)}")
    return names


Classes = Annotated[Names, AfterValidator(known_classes)]
"""Classes of questions that a signal is for; none: for every question."""


def on_units(tables: Tables) -> pl.DataFrame:
    """Return (question, unit, memory): the memories of each unit of the ranking, sorted.

    A unit of level memory has itself, a turn the memories that name it, a session all memories of the session. Memories
    said on a later day than the question was asked are left out.
    """
    ranking = tables["ranking"].select(PAIR)
    units = tables["units"].join(ranking, on="unit", how="semi")
    memories = tables["memories"].select("memory", *SESSION, "turns", "said_on").join(units, on=SESSION, how="semi")
    own = units.filter(pl.col("level") == "memory").select("unit", pl.col("unit").alias("memory")).join(
        memories.select("memory"), on="memory", how="semi")
    named = units.filter(pl.col("level") == "turn").select("unit", *SESSION, pl.col("turns").alias("turn"))
    turns = named.explode("turn").join(
        memories.select("memory", *SESSION, pl.col("turns").alias("turn")).explode("turn"), on=[*SESSION, "turn"])
    whole = units.filter(pl.col("level") == "session").join(memories.select("memory", *SESSION), on=SESSION)
    members = pl.concat([part.select("unit", "memory") for part in (own, turns, whole)]).unique()
    return (ranking.join(members, on="unit")
            .join(tables["questions"].select("question", "asked_on"), on="question", how="left")
            .join(memories.select("memory", "said_on"), on="memory", how="left")
            .filter(as_of()).select(*PAIR, "memory").sort(*PAIR, "memory"))


def placed(tables: Tables) -> pl.DataFrame:
    """Return (question, unit, corpus, session, turns, level, said_on) for the units of the ranking.

    ``said_on`` is a memory's own where the unit is a memory, else its session's.
    """
    days = tables["sessions"].select(*SESSION, pl.col("said_on").alias("day"))
    own = tables["memories"].select(pl.col("memory").alias("unit"), pl.lit("memory").alias("level"), "said_on")
    units = tables["units"].select("unit", *SESSION, "turns", "level").join(
        tables["ranking"], on="unit", how="semi").join(days, on=SESSION, how="left").join(
        own, on=["unit", "level"], how="left")
    return tables["ranking"].select(PAIR).join(
        units.select("unit", *SESSION, "turns", "level", pl.coalesce("said_on", "day").alias("said_on")),
        on="unit", how="left", maintain_order="left")


def questions_of(tables: Tables, classes: Sequence[str]) -> pl.DataFrame:
    """Return (question) for the ranked questions of these classes; without classes, for all."""
    questions = tables["ranking"].select(pl.col("question").unique(maintain_order=True))
    if not classes:
        return questions
    return questions.join(tables["classes"].filter(pl.col("class").is_in(list(classes))), on="question", how="semi")


def flagged(tables: Tables, units: pl.DataFrame, classes: Sequence[str], otherwise: float = 0.0) -> pl.DataFrame:
    """Return (question, unit, value) for all of the ranking: 1 for the pairs in ``units``, 0 for the others.

    Questions of other classes have the value ``otherwise`` throughout.
    """
    marked = units.select(PAIR).unique().with_columns(pl.lit(1.0).alias("in"))
    ours = questions_of(tables, classes).with_columns(pl.lit(True).alias("ours"))
    rows = tables["ranking"].select(PAIR).join(marked, on=PAIR, how="left", maintain_order="left").join(
        ours, on="question", how="left", maintain_order="left")
    return rows.select(*PAIR, pl.when("ours").then(pl.col("in").fill_null(0.0)).otherwise(otherwise).alias("value"))
