"""Time windows by a chat model: the first and the last day that a question is about."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, ClassVar

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.models.chat.replies import parse_json
from memlab.query.time_window.rules import READS, describe_window, texts_and_days, with_windows
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables
from memlab.text.fence import NOTE, fence_data
from memlab.text.temporal.calendar import Window

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
