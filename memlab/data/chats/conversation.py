"""Conversations as all readers of exports return them, and the sessions that are made of them.

A conversation has messages, of which branches that are not shown are left out, and is taken once where several files
hold it. Its sessions, one or one for each day, have a name and a date. What was left out or changed is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import pairwise
from typing import Any, Literal

from memlab.data.chats.times import FIX, Time, UnreadTime
from memlab.support.clock import Clock
from memlab.support.errors import MemlabError
from memlab.support.text.display import printable_line, replace_surrogates, shorten

Role = Literal["user", "assistant"]
OTHERS = "messages of other branches left out (edited questions, repeated answers)"
NAME_WIDTH = 80
Split = Literal["day", "conversation", "auto"]
"""Where conversations are cut into sessions: at midnight, nowhere, or at midnight where they are ``endless``.

Only ``day`` keeps the as-of rule, since a session is dated by its first message and days count.
"""



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


def shown_branch(messages: list[dict[str, Any]], key: Callable[[dict[str, Any]], str],
                 parent: Callable[[dict[str, Any]], str], leaf: str, tally: Tally,
                 is_spoken: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the messages up to ``leaf``, else to the last, and count the others; all where none names its parent.

    messages: in the order of time. key, parent: the ids of a message, "" for none. leaf: an id, "" for none. is_spoken:
    whether a message says something. The first message may name a parent that is in no export, as do other versions of
    it.
    """
    by_id = {name: message for message in messages if (name := key(message))}
    named = {name: parent(message) for name, message in by_id.items()}
    if len(by_id) < len(messages) or not any(above in by_id for above in named.values()):
        return messages
    root = next(iter(named.values()))
    parents = mend_parents({name: above if above != root or above in by_id else None for name, above in named.items()})
    path = path_to(leaf if leaf in by_id else next(reversed(by_id)), parents)
    tally.add(OTHERS, sum(is_spoken(by_id[name]) for name in by_id.keys() - {*path}))
    tally.add("conversations without a current message: the branch of the latest was taken",
              bool(leaf and leaf not in by_id))
    return [by_id[name] for name in path]


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the first message to ``leaf``; a circle ends the walk.

    >>> path_to("c", {"a": None, "b": "a", "b2": "a", "c": "b"})
    ['a', 'b', 'c']
    """
    path: list[str] = []
    seen: set[str] = set()
    while leaf is not None and leaf in parents and leaf not in seen:
        seen.add(leaf)
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


def mend_parents(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Let each message whose parent is not there follow the one before it; ``parents``: in the order of time.

    >>> mend_parents({"a": None, "b": "a", "d": "c"})
    {'a': None, 'b': 'a', 'd': 'b'}
    """
    before = dict(zip(parents, [None, *parents]))
    return {key: before[key] if parent and parent not in parents else parent for key, parent in parents.items()}


def single_copies(conversations: Sequence[Conversation], tally: Tally) -> list[Conversation]:
    """Return each conversation once, and count the others.

    By the vendor's id, the latest version is taken, as the vendor shows it. Chats that go on for years have no id: two
    of one title that share messages are joined. Others are copies if all their messages are the same, with their times.
    """
    groups: dict[object, list[Conversation]] = {}
    for number, conversation in enumerate(conversations):
        groups.setdefault(_identity(conversation) or number, []).append(conversation)
    kept: list[Conversation] = []
    for first, *others in groups.values():
        if first.key:
            kept.append(max([first, *others], key=lambda c: (_last(c), len(c.messages))))
        else:
            kept += _join([first, *others]) if first.endless and others else [first]
    tally.add("conversations that occur twice, taken once", len(conversations) - len(kept))
    return kept


def _identity(conversation: Conversation) -> object:
    """Return what copies of a conversation have in common; None if nothing tells copies from others."""
    if conversation.key or conversation.endless:
        return conversation.endless, conversation.key or conversation.title
    dated = any(isinstance(message.said_on, datetime) for message in conversation.messages)
    return tuple(map(_content, conversation.messages)) if dated else None


def _last(conversation: Conversation) -> str:
    return max((str(message.said_on or "") for message in conversation.messages), default="")


def _join(group: list[Conversation]) -> list[Conversation]:
    """Join chats that share messages, in the order of time."""
    whole, *others = sorted(group, key=lambda c: len(c.messages), reverse=True)
    apart = []
    for other in others:
        new = Counter(map(_content, other.messages)) - Counter(map(_content, whole.messages))
        if new.total() == len(other.messages):
            apart.append(other)
            continue
        added = []
        for message in reversed(other.messages):  # of what occurs more often here, the last
            if new[_content(message)]:
                new[_content(message)] -= 1
                added.append(message)
        messages = sorted([*whole.messages, *reversed(added)], key=lambda m: str(m.said_on or ""))
        whole = replace(whole, messages=messages)
    return [whole, *apart]


def _content(message: ChatMessage) -> tuple[str, str, str]:
    return str(message.said_on or ""), message.role, message.text


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
