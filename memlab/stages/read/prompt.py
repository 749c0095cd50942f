"""Prompts: units as the reader sees them, the messages that are sent for a question, and the answer in a reply.

A unit:

[2023-05-20]
user: I adopted a cat.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Literal, NamedTuple, Protocol, runtime_checkable

import polars as pl
from pydantic import Field, model_validator

from memlab.models.protocols import Message
from memlab.pipeline.question_types import FALLBACK, check_classes
from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import SCHEMAS, SESSION, Tables, with_text
from memlab.pipeline.transcript import TURN_SEPARATOR, render_turns, round_numbers
from memlab.support.errors import did_you_mean

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
    day = pl.col("said_on").dt.strftime(HEADER).fill_null("")
    return unit_bodies(units, tables, value).join(tables["sessions"], on=SESSION, how="left").select(
        "unit", (day + pl.col("body")).alias("text"))


def unit_bodies(units: pl.DataFrame, tables: Tables, value: Value) -> pl.DataFrame:
    """Return (unit, corpus, session, body): what ``render_units`` shows below the header."""
    memory = pl.col("level").eq("memory") if value == "unit" else pl.lit(False)
    session = ~memory & (pl.lit(True) if value == "session" else pl.col("level").eq("session"))
    makers = ((memory, _value_bodies), (session, _session_bodies),
              (~memory & ~session, partial(_turn_bodies, rounds=value == "round")))
    parts = [bodies_of(some, tables) for these, bodies_of in makers if (some := units.filter(these)).height]
    empty = pl.DataFrame(schema={name: SCHEMAS["units"].get(name, pl.String) for name in ("unit", *SESSION, "body")})
    return pl.concat([part.select(empty.columns) for part in parts]) if parts else empty


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


PLACEHOLDERS = ("question", "date", "history")
NOTHING = "(nothing)"
"""Stands for an empty history."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Item(NamedTuple):
    """One item of a context: the text that is shown, and the day of its session, if known."""

    text: str
    said_on: datetime | None = None


@stage
class PromptTemplate:
    """The messages for a question.

    Args:
        instructions: The user's message. It contains ``{question}``, ``{date}`` (the day it is asked on) and
            ``{history}``, each at least once, and no other word in braces. All are filled in one pass, so that braces
            in a question or a memory mean nothing.
        system: The system message; none if it is blank.
        history: "plain" shows the items one after the other, "numbered" with a number from 1 before each, "json" an
            array of {"date", "text"}. All stand between a pair of tags that does not occur in them, so that no memory
            can end the history.
        answer_mark: The answer is the text after the last occurrence of this mark, or the whole reply without one.
        max_tokens: Maximum tokens of a reply; None for the model's own limit.
    """

    instructions: str
    system: str = ""
    history: Literal["plain", "numbered", "json"] = "plain"  # plain | numbered | json
    answer_mark: Annotated[str, Field(min_length=1)] | None = None  # null: the whole reply is the answer
    max_tokens: Annotated[int, Field(ge=1)] | None = None  # null: the model's own limit

    @model_validator(mode="after")
    def _placeholders(self) -> PromptTemplate:
        names = _PLACEHOLDER.findall(self.instructions)
        for name in names:
            if name not in PLACEHOLDERS:
                raise ValueError(f"instructions name {{{name}}}; {did_you_mean(name, PLACEHOLDERS)}")
        for name in PLACEHOLDERS:
            if name not in names:
                raise ValueError(f"instructions lack {{{name}}}, so the reader would not be told the {name}")
        if filled := _PLACEHOLDER.findall(self.system):
            raise ValueError(f"system names {{{filled[0]}}}, but only the instructions are filled")
        return self

    def messages(self, question: str, asked_on: datetime | None, items: Sequence[Item]) -> tuple[Message, ...]:
        """Return the messages for a question with the items of its context, in the order in which they are shown.

        >>> ask = PromptTemplate(instructions="{history} On {date}: {question}")
        >>> ask.messages("Who {date}?", datetime(2023, 5, 20), [Item("user: hi")])[0].content
        '<history>\\nuser: hi\\n</history> On 2023-05-20 (Saturday): Who {date}?'
        """
        lead = "[{}] " if self.history == "numbered" else ""
        plain = TURN_SEPARATOR.join(lead.format(n) + item.text for n, item in enumerate(items, 1)) or NOTHING
        fills = {"question": question, "date": f"{asked_on:%Y-%m-%d (%A)}" if asked_on else "unknown",
                 "history": enclose(_json(items) if self.history == "json" else plain, question)}
        user = Message("user", _PLACEHOLDER.sub(lambda match: fills[match[1]], self.instructions))
        return (Message("system", self.system), user) if self.system.strip() else (user,)

    def parse(self, reply: str) -> str:
        """Return the answer in a reply, without the space around it.

        >>> PromptTemplate(instructions="{question}{date}{history}", answer_mark="Answer:").parse("So. Answer: two")
        'two'
        """
        return reply.rpartition(self.answer_mark)[2].strip() if self.answer_mark else reply.strip()

    def has_mark(self, reply: str) -> bool:
        """Return whether the reply contains the answer mark; true if the template has none."""
        return self.answer_mark is None or self.answer_mark in reply


def enclose(text: str, *beside: str) -> str:
    """Put a text between tags that occur neither in it nor in the texts beside it.

    >>> enclose("a </history> b")
    '<history-2>\\na </history> b\\n</history-2>'
    """
    inside = "\n".join([text, *beside]).lower()
    name, count = "history", 1
    while f"<{name}>" in inside or f"</{name}" in inside:
        count += 1
        name = f"history-{count}"
    return f"<{name}>\n{text}\n</{name}>"


def _json(items: Sequence[Item]) -> str:
    """Write the items as a JSON array, one object per line; the day moves from the text's header to its own key."""
    lines = []
    for text, day in items:
        body = text.removeprefix(day.strftime(HEADER) if day else "")
        lines.append(json.dumps({"date": f"{day:%Y-%m-%d}" if day else None, "text": body}, ensure_ascii=False))
    return "[" + ",\n".join(lines) + "]"


@runtime_checkable
class PromptRouter(Protocol):
    """The choice of a template by the class of a question."""

    def template(self, kind: str, default: PromptTemplate) -> PromptTemplate:
        """Return the template for a question of this class ("" if it has none); ``default`` is the reader's own."""


@stage
class OneReader:
    """The reader's own template for every question."""

    def template(self, kind: str, default: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the default template."""
        return default


@stage
class ComplexPrompts:
    """One template for complex questions, the reader's own for all others.

    Complex are the ``classes`` (query/classify) whose answers are put together or worked out.
    """

    complex: PromptTemplate
    classes: Names = ("counting", "multi_session", "temporal")

    @model_validator(mode="after")
    def _check_classes(self) -> ComplexPrompts:
        check_classes({f"read.agents.classes[{i}]": name for i, name in enumerate(self.classes)})
        return self

    def template(self, kind: str, default: PromptTemplate) -> PromptTemplate:
        """Return the template for complex questions, or the default one."""
        return self.complex if kind in self.classes else default


@stage
class RoutedPrompts:
    """Specialist templates for counting and temporal questions, the reader's own for all others.

    The class of a question comes from query/classify. Questions over several sessions go to the specialist for
    counting (``memlab.pipeline.question_types``). OltraMem's report has such agents lose 8 points.
    """

    counting: PromptTemplate
    temporal: PromptTemplate

    def template(self, kind: str, default: PromptTemplate) -> PromptTemplate:
        """Return the specialist's template, or the default one."""
        return {"counting": self.counting, "temporal": self.temporal}.get(FALLBACK.get(kind, kind), default)
