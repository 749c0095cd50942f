"""The words around the history: a template becomes the messages that are sent, and a reply becomes an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import Field, model_validator

from memlab.errors import did_you_mean
from memlab.models.chat.protocol import Message
from memlab.question_types import FALLBACK
from memlab.read.render import HEADER
from memlab.stage import stage
from memlab.text.transcript import TURN_SEPARATOR

PLACEHOLDERS = ("question", "date", "history")
NOTHING = "(nothing)"
"""What stands in the history's place where there is none."""

_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class Item(NamedTuple):
    """One item of a context: the text that is shown, and the day of its session where that is known."""

    text: str
    said_on: datetime | None = None


@stage
class PromptTemplate:
    """How a question is put to a reader.

    Args:
        instructions: The user's message. ``{question}``, ``{date}`` (the day it is asked on) and ``{history}`` stand
            in it, each at least once; other words in braces are a fault. They are filled in one pass, so that braces
            in a question or a memory mean nothing.
        system: The system message; none where it is blank.
        history: "plain" shows the items one after the other, "json" an array of {"date", "text"}. Both lie between a
            pair of tags that occurs nowhere in them, so that no memory can end the history.
        answer_mark: What stands before the answer: the text after its last occurrence is the answer, the whole reply
            where it is missing. None: the whole reply always.
        max_tokens: Tokens of a reply; None as the model is set up.
    """

    instructions: str
    system: str = ""
    history: Literal["plain", "json"] = "plain"  # plain | json
    answer_mark: Annotated[str, Field(min_length=1)] | None = None  # the whole reply is the answer
    max_tokens: Annotated[int, Field(ge=1)] | None = None  # as the model is set up

    @model_validator(mode="after")
    def _placeholders(self) -> PromptTemplate:
        found = _PLACEHOLDER.findall(self.instructions)
        for name in found:
            if name not in PLACEHOLDERS:
                raise ValueError(f"instructions name {{{name}}}; {did_you_mean(name, PLACEHOLDERS)}")
        for name in PLACEHOLDERS:
            if name not in found:
                raise ValueError(f"instructions lack {{{name}}}, so the reader would not be told the {name}")
        if filled := _PLACEHOLDER.findall(self.system):
            raise ValueError(f"system names {{{filled[0]}}}, but only the instructions are filled")
        return self

    def messages(self, question: str, asked_on: datetime | None, items: Sequence[Item]) -> tuple[Message, ...]:
        """Put a question with the items of its context, in the order in which they are shown.

        >>> ask = PromptTemplate(instructions="{history} On {date}: {question}")
        >>> ask.messages("Who {date}?", datetime(2023, 5, 20), [Item("user: hi")])[0].content
        '<history>\\nuser: hi\\n</history> On 2023-05-20 (Saturday): Who {date}?'
        """
        told = self._plain(items) if self.history == "plain" else _json(items)
        fills = {"question": question, "date": f"{asked_on:%Y-%m-%d (%A)}" if asked_on else "unknown",
                 "history": fenced(told, question)}
        user = Message("user", _PLACEHOLDER.sub(lambda found: fills[found[1]], self.instructions))
        return (Message("system", self.system), user) if self.system.strip() else (user,)

    def parse(self, reply: str) -> str:
        """Return the answer in a reply, without the space around it.

        >>> PromptTemplate(instructions="{question}{date}{history}", answer_mark="Answer:").parse("So. Answer: two")
        'two'
        """
        return reply.rpartition(self.answer_mark)[2].strip() if self.answer_mark else reply.strip()

    def marked(self, reply: str) -> bool:
        """Tell whether the reply has the mark that was asked for; true where none was."""
        return self.answer_mark is None or self.answer_mark in reply

    @staticmethod
    def _plain(items: Sequence[Item]) -> str:
        return TURN_SEPARATOR.join(item.text for item in items) or NOTHING


def fenced(told: str, *beside: str) -> str:
    """Put a text between tags that occur neither in it nor in the texts beside it.

    >>> fenced("a </history> b")
    '<history-2>\\na </history> b\\n</history-2>'
    """
    inside = "\n".join([told, *beside]).lower()
    name, count = "history", 1
    while f"<{name}>" in inside or f"</{name}" in inside:
        count += 1
        name = f"history-{count}"
    return f"<{name}>\n{told}\n</{name}>"


def _json(items: Sequence[Item]) -> str:
    """Write the items as a JSON array, one object a line; the day moves from the text's head to a key of its own."""
    lines = []
    for text, day in items:
        header = day.strftime(HEADER) if day else ""
        said = text.removeprefix(header)
        lines.append(json.dumps({"date": f"{day:%Y-%m-%d}" if day else None, "text": said}, ensure_ascii=False))
    return "[" + ",\n".join(lines) + "]"


@runtime_checkable
class Agents(Protocol):
    """The choice of a template by the class of a question."""

    def template(self, kind: str, usual: PromptTemplate) -> PromptTemplate:
        """Return the template for a question of this class, "" where it has none; ``usual`` is the reader's own."""
        ...


@stage
class OneReader:
    """Every question is put with the reader's own template."""

    def template(self, kind: str, usual: PromptTemplate) -> PromptTemplate:  # noqa: ARG002
        """Return the usual template."""
        return usual


@stage
class Routed:
    """Counting and temporal questions go to specialists, all others to the reader's own template.

    The class is what query/classify told of the question. One over several sessions goes to the specialist for
    counting (``memlab.question_types``). OltraMem's report has such agents lose 8 points.
    """

    counting: PromptTemplate
    temporal: PromptTemplate

    def template(self, kind: str, usual: PromptTemplate) -> PromptTemplate:
        """Return the specialist's template, or the usual one."""
        return {"counting": self.counting, "temporal": self.temporal}.get(FALLBACK.get(kind, kind), usual)
