"""Time windows by rules: the days that a question names, added to its words or set as the query's window."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time
from typing import ClassVar

import polars as pl

from memlab.stage import stage
from memlab.store import Store
from memlab.tables import SCHEMAS, Tables, add_texts, with_text
from memlab.text.temporal.calendar import Window, months
from memlab.text.temporal.question_window import window_of

READS = ("queries", "questions", "texts")


@stage
class AppendDates:
    """Append the days that rules read from a query to its words, in the format of ``write/context=header``.

    It helps where keys contain dates. A query that names no time stays as it is.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("queries", "texts")

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries with longer texts."""
        queries = texts_and_days(tables)
        longer = [f"{text} ({describe_window(*window)})" if (window := window_of(text, day)) else text
                  for text, day in queries.iter_rows()]
        if longer == queries["text"].to_list():
            return Tables(queries=tables["queries"], texts=tables["texts"])
        ids, texts = add_texts(tables["texts"], longer)
        return Tables(queries=tables["queries"].with_columns(ids), texts=texts)


@stage
class RuleWindows:
    """Set the window of each query to the days that rules read from it; ``rank/window`` moves its units forward.

    A query that names no time has no window, and nothing changes for it.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("queries",)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002 (a stage's signature)
        """Return the queries with windows."""
        windows = [window_of(text, day) for text, day in texts_and_days(tables).iter_rows()]
        return Tables(queries=with_windows(tables["queries"], windows))


def texts_and_days(tables: Tables) -> pl.DataFrame:
    """Return ``text`` and ``day`` of the queries in their order; the day is that of the question, or null."""
    days = tables["questions"].select("question", pl.col("asked_on").dt.date().alias("day"))
    return with_text(tables["queries"], tables["texts"]).with_columns(pl.col("text").fill_null("")).join(
        days, on="question", how="left", maintain_order="left").select("text", "day")


def with_windows(queries: pl.DataFrame, windows: Sequence[Window | None]) -> pl.DataFrame:
    """Return the queries with these windows (n,), from midnight of the first day to midnight of the last."""
    spans = [[datetime.combine(day, time()) for day in window] if window else None for window in windows]
    return queries.with_columns(pl.Series("window", spans, SCHEMAS["queries"]["window"]))


def describe_window(start: date, end: date) -> str:
    """Write a window in words.

    >>> describe_window(date(2023, 5, 20), date(2023, 5, 20)), describe_window(date(2023, 5, 1), date(2023, 5, 31))
    ('Saturday 20 May 2023', 'May 2023')
    >>> describe_window(date(2023, 5, 14), date(2023, 5, 20))
    '14 May 2023 to 20 May 2023'
    """
    if start == end:
        return f"{start:%A} {_day(start)}"
    if (start, end) == months(start.replace(day=1), 1):
        return f"{start:%B %Y}"
    if (start, end) == months(start.replace(month=1, day=1), 12):
        return f"{start.year}"
    return f"{_day(start)} to {_day(end)}"


def _day(day: date) -> str:
    return f"{day.day} {day:%B %Y}"
