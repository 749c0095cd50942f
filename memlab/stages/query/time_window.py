"""The time window of a question, by rules or by a chat model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, time
from typing import Annotated, Any, ClassVar

import polars as pl
from pydantic import Field

from memlab.models.chat.replies import parse_json
from memlab.models.protocols import Chat, Message, Prompt
from memlab.pipeline.stage import stage
from memlab.pipeline.tables import SCHEMAS, Notes, Tables, add_texts, with_text
from memlab.pipeline.transcript import NOTE, fence_data
from memlab.store import Store
from memlab.support.text.temporal.calendar import Window, months
from memlab.support.text.temporal.question_window import window_of

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


INSTRUCTION = """You find out which days a question about past conversations is about. You are told the day on \
which it is asked. If the question says when the thing it asks about happened (a date, "last week", "two months \
ago", "in May"), reply with the first and the last day of that time. If it asks when something happened, or says \
nothing of time, reply with null for both. Never guess. Reply as JSON: {"start": "YYYY-MM-DD" or null, "end": \
"YYYY-MM-DD" or null}."""

_DAY = {"type": ["string", "null"]}
SCHEMA = json.dumps({"type": "object", "properties": {"start": _DAY, "end": _DAY}, "required": ["start", "end"],
                     "additionalProperties": False})


@stage
class LLMWindows:
    """Set the window of each query to the days that a chat model reads from it.

    An unreadable reply is counted, and its query has no window. Neither has a query whose question has no day, or whose
    window lies after that day.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("queries",)

    chat: Chat
    max_tokens: Annotated[int, Field(ge=1)] = 64  # per reply: two dates in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries with windows; warn of replies that could not be read."""
        rows = texts_and_days(tables).rows()
        distinct = list(dict.fromkeys(row for row in rows if row[1] is not None))
        prompts = [Prompt((Message("system", f"{INSTRUCTION}\n{NOTE}"), Message(
            "user", f"Today is {describe_window(day, day)}.\n\n{fence_data({'QUESTION': text})}")),
            schema=SCHEMA, max_tokens=self.max_tokens) for text, day in distinct]
        windows: dict[tuple[str, date], Window | None] = {}
        notes, unreadable = Notes(), 0
        for (text, day), reply in zip(distinct, store.completions(self.chat, prompts, notes)):
            try:
                windows[text, day] = _window(parse_json(reply, SCHEMA), day)
            except ValueError:
                unreadable += 1
        notes.warn(unreadable, len(distinct), "windows could not be read; those queries have none")
        return Tables(queries=with_windows(tables["queries"], [windows.get(row) for row in rows]),
                      notes=notes.table())


def _window(reply: Any, today: date) -> Window | None:
    """Return the window in a reply, or None; raise ValueError if the reply is neither."""
    if reply is None:
        raise ValueError("no JSON")
    if reply["start"] is None and reply["end"] is None:
        return None
    start, end = (date.fromisoformat(reply[k] or reply[other] or "")
                  for k, other in (("start", "end"), ("end", "start")))
    if start > end:
        raise ValueError("the end lies before the start")
    return (start, min(end, today)) if start <= today else None
