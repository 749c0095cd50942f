"""What a unit looks like to the reader: the day on top, then the text.

    [2023-05-20]
    user: I adopted a cat.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

from memlab.tables import Tables
from memlab.text.transcript import BETWEEN, spoken

Value = Literal["unit", "turn", "round", "session"]
RENDER_READS = ("texts", "sessions", "turns", "memories", "units")
HEADER = "[%Y-%m-%d]\n"
"""The day above what was said on it."""
_SESSION = ["corpus", "session"]


def rendered(units: pl.DataFrame, tables: Tables, value: Value) -> pl.DataFrame:
    """Render units (rows of ``units``) as (unit, text).

    value "unit" shows a memory's value, a turn, or a session, whatever was ranked; "turn" the turns that the
    unit stands for; "round" the rounds that those turns belong to; "session" the whole session that it lies in. A
    memory whose session has no date shows none.
    """
    memory = pl.col("level").eq("memory") if value == "unit" else pl.lit(False)
    session = pl.lit(True) if value == "session" else pl.col("level").eq("session")
    by_value, rest = units.filter(memory), units.filter(~memory)
    texts = tables["texts"].rename({"hash": "value", "text": "body"})
    values = (by_value.join(tables["memories"].select("memory", "value"), left_on="unit", right_on="memory")
              .join(texts, on="value").select("unit", *_SESSION, "body"))
    here = tables["turns"].join(rest.select(_SESSION).unique(), on=_SESSION, how="semi")
    lines = spoken(here, tables["texts"]).select(*_SESSION, "turn", "line", rounds().alias("round"))
    body = pl.col("line").str.join(BETWEEN).alias("body")
    whole = rest.filter(session).join(lines.group_by(_SESSION, maintain_order=True).agg(body), on=_SESSION)
    named = rest.filter(~session).select("unit", *_SESSION, pl.col("turns").alias("turn")).explode("turn")
    said = named.join(lines, on=[*_SESSION, "turn"])
    if value == "round":
        said = said.select("unit", *_SESSION, "round").unique().join(lines, on=[*_SESSION, "round"])
    parts = said.sort("unit", "turn").group_by(["unit", *_SESSION], maintain_order=True).agg(body)
    bodies = pl.concat([f.select("unit", *_SESSION, "body") for f in (values, whole, parts)])
    day = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    return bodies.join(tables["sessions"], on=_SESSION, how="left").select("unit", (day + pl.col("body")).alias("text"))


def rounds() -> pl.Expr:
    """Number the rounds of each session, for turns in order: a turn of the one who asks and all up to that one's next.

    The one who asks is the user; among people with names, whoever speaks first as a user. What is said before belongs
    to round 0. These are the rounds that ``write/chunk=round`` writes.
    """
    user, name = pl.col("role") == "user", pl.col("speaker").fill_null("")
    opens = user & (name == name.filter(user).first().over(_SESSION))
    return opens.fill_null(False).cast(pl.Int32).cum_sum().over(_SESSION)
