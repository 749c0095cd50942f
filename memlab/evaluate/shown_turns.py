"""Which turns a context shows: what attribution must know before it blames the packer."""

from __future__ import annotations

import polars as pl

from memlab.tables import Tables
from memlab.text.transcript import TURN_SEPARATOR, render_turns

COVERED_READS = ("texts", "turns", "units")
_SESSION = ["corpus", "session"]


def covered(context: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return (question, session, turn) of the turns that the rows of a context show.

    Those are the turns that its units stand for, and those of the unit's session that the text holds word for word: a
    row may show the round or the whole session around its unit. A row without a unit shows no turn that is known.
    """
    rows = context.join(tables["units"].select("unit", *_SESSION, "turns"), on="unit")
    named = rows.select("question", "session", pl.col("turns").alias("turn")).explode("turn").drop_nulls()
    bodies = rows.select("question", *_SESSION, pl.col("text").alias("hash")).join(tables["texts"], on="hash")
    distinct = bodies.select(*_SESSION, "hash", "text").unique(["hash", *_SESSION])
    lines = render_turns(tables["turns"].join(distinct, on=_SESSION, how="semi"), tables["texts"])
    # a header ends with a newline, a turn before or after stands a blank line away
    within = ("\n" + pl.col("text") + TURN_SEPARATOR).str.contains(
        "\n" + pl.col("display_text") + TURN_SEPARATOR, literal=True)
    held = distinct.join(lines.select(*_SESSION, "turn", "display_text"), on=_SESSION).filter(within)
    told = bodies.drop("text").join(held.select(*_SESSION, "hash", "turn"), on=[*_SESSION, "hash"])
    return pl.concat([named, told.select("question", "session", "turn")]).unique().sort("question", "session", "turn")
