"""Sessions made of conversations, named and dated: one for each, or one for each day."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Literal

from memlab.data.chats.conversation import ChatMessage, Conversation, Tally, first_words
from memlab.data.chats.times import FIX, UnreadTime
from memlab.support.clock import Clock
from memlab.support.errors import MemlabError
from memlab.support.text.display import printable_line, replace_surrogates, shorten

NAME_WIDTH = 80


Split = Literal["day", "conversation", "auto"]
"""Where conversations are cut into sessions: at midnight, nowhere, or at midnight where they are ``endless``.

Only ``day`` keeps the as-of rule, since a session is dated by its first message and days count.
"""


@dataclass(frozen=True)
class ChatSession:
    """A session to write.

    said_on: the local time of its first message, None if the export states no time. room: "" for none.
    """

    name: str
    said_on: datetime | None
    turns: tuple[ChatMessage, ...]
    room: str = ""


def to_sessions(conversations: Iterable[Conversation], split: Split, zone: tzinfo, tally: Tally) -> list[ChatSession]:
    """Return the sessions in the order of time, those without a date first; each name occurs once.

    zone: time zone of the dates; times that an export states without a zone stay as they are. Raises MemlabError for an
    export that states both kinds, and for a conversation all of whose times cannot be read. Counts sessions that run
    over several days or have no date, times that cannot be read, and conversations without a message.
    """
    clock = Clock(zone)
    parts: list[tuple[str, ChatSession]] = []
    for conversation in conversations:
        title = conversation.title or first_words(conversation.messages)
        place = f"conversation '{printable_line(replace_surrogates(title))[:NAME_WIDTH]}'"
        messages = [replace(m, text=replace_surrogates(m.text), speaker=m.speaker and printable_line(m.speaker))
                    for m in conversation.messages]
        times = [clock.local(m.said_on, place) if m.said_on else None for m in messages]
        tally.add("conversations without a message left out", not messages)
        unread = [t for t in (*(m.said_on for m in messages), conversation.started_on) if isinstance(t, UnreadTime)]
        for time in unread:
            tally.add("times that cannot be read left out", kind=f"{time.field} {time.value}")
        for part in _parts(times, split == "day" or split == "auto" and conversation.endless):
            said_on = [moment for moment in times[part] if moment]
            start = said_on[0] if said_on else None
            if start is None and conversation.started_on:
                start = clock.local(conversation.started_on, place)
            if start is None and unread:
                raise MemlabError(f"field {unread[0].field} looks like a time, but {unread[0].value} is none",
                                  where=place, fix=f"{FIX}, into a field timestamp; or remove the field")
            tally.add("sessions that run over several days, dated by their first message (--split day cuts them)",
                      len({moment.date() for moment in said_on}) > 1)
            room = printable_line(replace_surrogates(conversation.room))
            parts.append((title, ChatSession(_name(title, start), start, tuple(messages[part]), room)))
    tally.add("sessions without a date, which every question may see", sum(s.said_on is None for _, s in parts))
    parts.sort(key=lambda part: (str(part[1].said_on or ""), part[0], [m.text for m in part[1].turns]))
    sessions = [session for _, session in parts]
    return [replace(s, name=name) for s, name in zip(sessions, distinct(s.name for s in sessions))]


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> Iterator[str]:
    """Yield each name with a number if it was there before.

    >>> list(distinct(["Job", "Job", "Cat"], taken=["Cat", "Job (2)"]))
    ['Job', 'Job (3)', 'Cat (2)']
    """
    used = set(taken)
    counts: Counter[str] = Counter()
    for name in names:
        unique = name
        while unique in used:
            counts[name] += 1
            unique = f"{name} ({counts[name] + 1})"
        used.add(unique)
        yield unique


def _name(title: str, start: datetime | None) -> str:
    """Return the day and the title.

    >>> _name("Lisbon\\n trip", datetime(2024, 3, 1, 9))
    '2024-03-01 Lisbon trip'
    """
    label = shorten(printable_line(replace_surrogates(title)).strip(), NAME_WIDTH)
    return " ".join(filter(None, [f"{start:%Y-%m-%d}" if start else "", label])) or "chat"


def _parts(times: Sequence[datetime | None], by_days: bool) -> Iterator[slice]:
    """Yield the places of each part of a conversation; a message without a date stays with the one before it."""
    first = 0
    dated = [(place, time.date()) for place, time in enumerate(times) if time]
    for (_, before), (place, day) in pairwise(dated):
        if by_days and day != before:
            yield slice(first, place)
            first = place
    if times:
        yield slice(first, len(times))
