"""Windows by a chat model: which days a question is about, as two dates."""

from __future__ import annotations

import json
from datetime import date
from typing import Annotated, Any, ClassVar

from pydantic import Field

from memlab.models.chat.protocol import Chat, Message, Prompt
from memlab.models.chat.replies import parse_json
from memlab.query.time_window.rules import READS, dated, in_words, with_windows
from memlab.stage import stage
from memlab.store import Store
from memlab.tables import Notes, Tables
from memlab.text.temporal.question_window import Window

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
    """Set the window of each query to the days that a chat model reads off it.

    A reply that is no window changes nothing and is counted; so does one that lies after the question's day, or a
    question without a day.
    """

    reads: ClassVar = READS
    writes: ClassVar = ("queries",)

    chat: Chat
    max_tokens: Annotated[int, Field(ge=1)] = 64  # of a reply: two dates in JSON

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the queries with windows; warns of replies that could not be read."""
        rows = dated(tables).select("text", "day").rows()
        asks = list(dict.fromkeys(row for row in rows if row[1] is not None))
        prompts = [Prompt((Message("system", INSTRUCTION),
                           Message("user", f"Today is {in_words(day, day)}.\nQuestion: {words}")),
                          schema=SCHEMA, max_tokens=self.max_tokens) for words, day in asks]
        found: dict[tuple[str, date], Window | None] = {}
        notes, unread = Notes(), 0
        for (words, day), reply in zip(asks, store.completions(self.chat, prompts, notes)):
            try:
                found[words, day] = _window(parse_json(reply, SCHEMA), day)
            except ValueError:
                unread += 1
        notes.warn(unread, len(asks), "windows could not be read; those queries have none")
        return Tables(queries=with_windows(tables["queries"], [found.get(row) for row in rows]),
                      notes=notes.table())


def _window(said: Any, asked: date) -> Window | None:
    """Read a reply; raises ValueError for what is no window."""
    if said is None:
        raise ValueError("no JSON")
    if said["start"] is None and said["end"] is None:
        return None
    start, end = (date.fromisoformat(said[k] or said[other]) for k, other in (("start", "end"), ("end", "start")))
    if start > end:
        raise ValueError("the end lies before the start")
    return (start, min(end, asked)) if start <= asked else None
