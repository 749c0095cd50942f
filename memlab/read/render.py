"""The text of a unit as the reader sees it: the day on top, then what was said.

    [2023-05-20]
    user: I adopted a cat.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from memlab.tables import SESSION, Tables, with_text
from memlab.text.transcript import TURN_SEPARATOR, render_turns, round_numbers

Value = Literal["unit", "turn", "round", "session"]
RENDER_READS = ("texts", "sessions", "turns", "memories", "units")
HEADER = "[%Y-%m-%d]\n"
"""The day, above what was said on it."""


def render_units(units: pl.DataFrame, tables: Tables, value: Value) -> pl.DataFrame:
    """Render units (rows of ``units``) as (unit, text).

    value "unit" shows the ranked unit itself (a memory's value, a turn or a session), "turn" the turns that the unit
    stands for, "round" the rounds of those turns, "session" its whole session. A session without a date has no header.
    """
    memory = pl.col("level").eq("memory") if value == "unit" else pl.lit(False)
    session = pl.lit(True) if value == "session" else pl.col("level").eq("session")
    by_value, rest = units.filter(memory), units.filter(~memory)
    values = with_text(by_value.join(tables["memories"].select("memory", "value_id"), left_on="unit",
                                     right_on="memory"), tables["texts"], "value_id", "body")
    covered = tables["turns"].join(rest.select(SESSION).unique(), on=SESSION, how="semi")
    lines = render_turns(covered, tables["texts"]).select(
        *SESSION, "turn", "display_text", round_numbers().alias("round"))
    body = pl.col("display_text").str.join(TURN_SEPARATOR).alias("body")
    whole = rest.filter(session).join(lines.group_by(SESSION, maintain_order=True).agg(body), on=SESSION)
    turns = rest.filter(~session).select("unit", *SESSION, pl.col("turns").alias("turn")).explode("turn")
    shown = turns.join(lines, on=[*SESSION, "turn"])
    if value == "round":
        shown = shown.select("unit", *SESSION, "round").unique().join(lines, on=[*SESSION, "round"])
    parts = shown.sort("unit", "turn").group_by(["unit", *SESSION], maintain_order=True).agg(body)
    bodies = pl.concat([f.select("unit", *SESSION, "body") for f in (values, whole, parts)])
    day = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    return bodies.join(tables["sessions"], on=SESSION, how="left").select("unit", (day + pl.col("body")).alias("text"))
