"""Conversations as all readers of exports return them: messages, and what was left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from memlab.data.chats.times import Time
from memlab.support.text.display import shorten

Role = Literal["user", "assistant"]


@dataclass(frozen=True)
class ChatMessage:
    """A message, with the time that the export states."""

    role: Role
    text: str
    speaker: str | None = None
    said_on: Time = None


@dataclass(frozen=True)
class Conversation:
    """Messages in order.

    title: the vendor's; the first words stand for none. started_on: used where no message has a time. endless: whether
    it is a channel or chat that goes on for years, which ``--split auto`` cuts by days. key: the vendor's id, "" for
    none. room: the channel or chat, "" for none.
    """

    title: str
    messages: Sequence[ChatMessage]
    started_on: Time = None
    endless: bool = False
    key: str = ""
    room: str = ""


@dataclass
class Tally:
    """Counts of what was left out or changed, and remarks for the user."""

    remarks: list[str] = field(default_factory=list)
    _kinds: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, what: str, count: int = 1, kind: str = "") -> None:
        """Count something, in words that a number follows; ``kind`` is the export's name for it."""
        if count:
            self._kinds.setdefault(what, Counter())[kind] += count

    @property
    def counts(self) -> Counter[str]:
        """Each count by its words, with the names of the six most frequent kinds.

        >>> tally = Tally()
        >>> tally.add("lines left out", 2, kind="mode"), tally.add("lines left out", 3, kind="progress")
        (None, None)
        >>> dict(tally.counts)
        {'lines left out (progress, mode)': 5}
        """
        counts: Counter[str] = Counter()
        for what, kinds in self._kinds.items():
            named = sorted((kind for kind in kinds if kind), key=lambda kind: (-kinds[kind], kind))
            names = [" ".join(kind.split())[:40] for kind in named[:6]] + ["..."] * (len(named) > 6)
            counts[f"{what} ({', '.join(names)})" if names else what] += kinds.total()
        return counts


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
    return shorten(" ".join(next((m.text for m in messages if m.text), "").split()), width)
