"""Conversations as all readers of exports return them, and the tally of what was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Literal, Protocol

from memlab.chats.source import ExportFile
from memlab.errors import MemlabError
from memlab.runtime.clock import read_moment

Role = Literal["user", "assistant"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ChatMessage:
    """A message; ``said_on`` has a UTC offset, or none if the export states local times; None if it states no time."""

    role: Role
    text: str
    speaker: str | None = None
    said_on: date | datetime | None = None


@dataclass(frozen=True)
class Conversation:
    """Messages in order.

    title: the vendor's, or the first words. started_on: used where the first message has no time. endless: whether it
    is a channel or chat that goes on for years, which ``--split auto`` cuts by days.
    """

    title: str
    messages: Sequence[ChatMessage]
    started_on: date | datetime | None = None
    endless: bool = False


@dataclass
class Tally:
    """Counts of what was left out or changed, and remarks for the user."""

    counts: Counter[str] = field(default_factory=Counter)
    remarks: list[str] = field(default_factory=list)

    def add(self, what: str, count: int = 1) -> None:
        """Count something, in words that follow a number."""
        if count:
            self.counts[what] += count


class ExportFormat(Protocol):
    """A reader of one vendor's export."""

    name: ClassVar[str]
    title: ClassVar[str]

    def matches(self, file: ExportFile) -> bool:
        """Return whether a file has this format, by its structure."""
        ...

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations of an export; raise MemlabError naming file and field where it is damaged."""
        ...


def text_of(value: object) -> str:
    """Return a text without blanks at its ends; "" for anything else."""
    return value.strip() if isinstance(value, str) else ""


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def epoch(value: object) -> date | datetime | None:
    """Return the moment of seconds since 1970, as number or text, in UTC; None for anything else.

    >>> epoch("1709286000.000100").isoformat(), epoch(None), epoch(1e300)
    ('2024-03-01T09:40:00+00:00', None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
        return iso(_EPOCH + timedelta(seconds=int(seconds))) if math.isfinite(seconds) else None
    except (ValueError, OverflowError):
        return None


def iso(value: object) -> date | datetime | None:
    """Return the date or time of an ISO text, with its UTC offset or without; None for anything else.

    >>> iso("2024-03-01T09:40:00.123Z").isoformat(), iso("soon")
    ('2024-03-01T09:40:00+00:00', None)
    """
    with suppress(MemlabError):
        moment = read_moment(value)
        return moment.replace(microsecond=0) if isinstance(moment, datetime) else moment
    return None


def merge_assistant(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Join what the assistant said in several messages (around its tool calls) to one turn, with the first's time."""
    merged: list[ChatMessage] = []
    for message in messages:
        if merged and message.role == "assistant" == merged[-1].role and message.speaker == merged[-1].speaker:
            merged[-1] = replace(merged[-1], text=f"{merged[-1].text}\n{message.text}")
        else:
            merged.append(message)
    return merged


def first_words(messages: Iterable[ChatMessage], width: int = 40) -> str:
    """Return the beginning of the first text as a title."""
    text = " ".join(next((m.text for m in messages if m.text), "").split())
    return text if len(text) <= width else text[:width].rsplit(" ", 1)[0]
