"""The text of a unit as the reader sees it: the day on top, then what was said.

    [2023-05-20]
    user: I adopted a cat.
"""

from __future__ import annotations

from functools import partial
from typing import Literal

import polars as pl

from memlab.tables import SCHEMAS, SESSION, Tables, with_text
from memlab.text.transcript import TURN_SEPARATOR, render_turns, round_numbers

Value = Literal["unit", "turn", "round", "session"]
RENDER_READS = ("texts", "sessions", "turns", "memories", "units")
HEADER = "[%Y-%m-%d]\n"
"""The day, above what was said on it."""
BODY = pl.col("display_text").str.join(TURN_SEPARATOR).alias("body")
"""Turns of a group in their order, as one text."""


def render_units(units: pl.DataFrame, tables: Tables, value: Value) -> pl.DataFrame:
    """Render units (rows of ``units``) as (unit, text).

    value "unit" shows the ranked unit itself (a memory's value, a turn or a session), "turn" the turns that the unit
    stands for, "round" the rounds of those turns, "session" its whole session. A session without a date has no header.
    """
    memory = pl.col("level").eq("memory") if value == "unit" else pl.lit(False)
    session = ~memory & (pl.lit(True) if value == "session" else pl.col("level").eq("session"))
    makers = ((memory, _value_bodies), (session, _session_bodies),
              (~memory & ~session, partial(_turn_bodies, rounds=value == "round")))
    parts = [bodies_of(some, tables) for these, bodies_of in makers if (some := units.filter(these)).height]
    if not parts:
        return pl.DataFrame(schema={"unit": SCHEMAS["units"]["unit"], "text": pl.String})
    bodies = pl.concat([part.select("unit", *SESSION, "body") for part in parts])
    day = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    return bodies.join(tables["sessions"], on=SESSION, how="left").select("unit", (day + pl.col("body")).alias("text"))


def _value_bodies(units: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return the units, which are memories, with ``body``: the memory's value."""
    values = units.join(tables["memories"].select("memory", "value_id"), left_on="unit", right_on="memory")
    return with_text(values, tables["texts"], "value_id", "body")


def _session_bodies(units: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return the units with ``body``: all turns of their session."""
    lines = render_turns(tables["turns"].join(units, on=SESSION, how="semi"), tables["texts"])
    return units.join(lines.group_by(SESSION, maintain_order=True).agg(BODY), on=SESSION)


def _turn_bodies(units: pl.DataFrame, tables: Tables, rounds: bool) -> pl.DataFrame:
    """Return the units with ``body``: their turns, or all turns of the rounds of these."""
    turns, place = units.select("unit", *SESSION, pl.col("turns").alias("turn")).explode("turn"), [*SESSION, "turn"]
    if rounds:
        numbered = tables["turns"].join(units, on=SESSION, how="semi").sort(place).select(
            *place, round_numbers().alias("round"))
        turns = turns.join(numbered, on=place).select("unit", *SESSION, "round").unique().join(
            numbered, on=[*SESSION, "round"])
    lines = render_turns(tables["turns"].join(turns, on=place, how="semi"), tables["texts"])
    return turns.join(lines, on=place).sort("unit", "turn").group_by(["unit", *SESSION], maintain_order=True).agg(BODY)
