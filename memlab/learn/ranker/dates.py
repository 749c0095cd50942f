"""Features of the dates of a question and of a turn's session."""

from __future__ import annotations

import polars as pl

from memlab.tables import SESSION, Tables, with_text
from memlab.text.temporal.question_window import window_of


def date_features(head: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Return features of each row's session date against the question: its age, its place, the days that are named.

    "date place" is the share of the question's ranked sessions that are older. A date named in the question
    (``window_of``) is compared in days: 0 inside the window. Null without a date, or if none is named.
    """
    windows = [(q, *window) for q, text, day in with_text(tables["questions"], tables["texts"]).select(
        "question", "text", "asked_on").iter_rows() if (window := window_of(text or "", day and day.date()))]
    named = pl.DataFrame(windows, schema={"question": pl.Int32, "first": pl.Date, "last": pl.Date}, orient="row")
    session = ["question", *SESSION]
    rows = head.select(session).unique().join(tables["sessions"], on=SESSION, how="left", maintain_order="left")
    rows = rows.join(tables["questions"].select("question", "asked_on"), on="question", how="left",
                     maintain_order="left").join(named, on="question", how="left", maintain_order="left")
    said = pl.col("said_on").dt.date()
    places = rows.select("question", "said_on").unique().drop_nulls().with_columns(
        ((pl.col("said_on").rank("ordinal").over("question") - 1) / (pl.len().over("question") - 1).clip(1)
         ).alias("date place")).drop_nulls()
    rows = rows.join(places, on=["question", "said_on"], how="left", maintain_order="left")
    days = pl.max_horizontal((pl.col("first") - said).dt.total_days(), (said - pl.col("last")).dt.total_days(),
                             pl.lit(0))
    after = (said - pl.col("first")).dt.total_days()
    made = rows.select(
        *session, (pl.col("asked_on") - pl.col("said_on")).dt.total_days().clip(0).log1p().alias("age"), "date place",
        pl.when(pl.col("first").is_not_null() & said.is_not_null()).then(days.log1p()).alias("days from named"),
        pl.when(pl.col("first").is_not_null()).then(after.clip(-60, 60)).alias("days after named"),
        pl.col("first").is_not_null().alias("names a date"),
    )
    return head.select(session).join(made, on=session, how="left", maintain_order="left").drop(session)
