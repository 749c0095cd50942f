"""Sessions made of conversations, named and dated, and the folder that ``data=custom`` reads.

There is one session for each conversation, or one for each day or stretch without a pause.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from memlab.chats.conversation import ChatMessage, Conversation, Tally
from memlab.errors import MemlabError
from memlab.runtime.clock import Clock
from memlab.runtime.files import atomic_write
from memlab.text.display import printable_line, replace_surrogates

NAME_WIDTH = 80


@dataclass(frozen=True)
class Cut:
    """Where a conversation is cut into sessions.

    days: at midnight. pause: where nobody wrote for so long. Neither: nowhere. ``endless_only`` leaves conversations
    that end whole, and cuts channels and chats.
    """

    days: bool = False
    pause: timedelta | None = None
    endless_only: bool = False


def parse_cut(text: str) -> Cut:
    """Read a cut: day, hours of silence, conversation, or auto.

    Only ``day`` keeps the as-of rule, since a session is dated by its first message and days count.

    >>> parse_cut("4h").pause, parse_cut("auto").endless_only
    (datetime.timedelta(seconds=14400), True)
    """
    named = {"auto": Cut(days=True, endless_only=True), "conversation": Cut(), "day": Cut(days=True)}
    if text in named:
        return named[text]
    if re.fullmatch(r"[1-9][0-9]{0,5}h", text):
        return Cut(pause=timedelta(hours=int(text[:-1])))
    raise MemlabError(f"'{text:.40}' is no cut", where="--split",
                      fix="give day, hours of silence such as 4h, conversation, or auto")


@dataclass(frozen=True)
class ChatSession:
    """A session to write; ``said_on`` is the local time of its first message, None if the export states no time."""

    name: str
    said_on: datetime | None
    turns: tuple[ChatMessage, ...]


def to_sessions(conversations: Iterable[Conversation], cut: Cut, zone: tzinfo, tally: Tally) -> list[ChatSession]:
    """Return the sessions in the order of time, those without a date first; each name occurs once.

    zone: time zone of the dates; times that an export states without a zone stay as they are. Raises MemlabError for an
    export that states both kinds. Counts sessions that run over several days, messages without a date, and
    conversations without a message.
    """
    clock = Clock(zone)
    parts: list[tuple[Conversation, datetime | None, tuple[ChatMessage, ...]]] = []
    for conversation in conversations:
        place = f"conversation '{printable_line(replace_surrogates(conversation.title))[:NAME_WIDTH]}'"
        messages = [replace(m, text=replace_surrogates(m.text), speaker=m.speaker and printable_line(m.speaker))
                    for m in conversation.messages]
        times = [clock.local(m.said_on, place) if m.said_on else None for m in messages]
        tally.add("conversations without a message left out", not messages)
        for part in _cut(times, cut, conversation.endless):
            said_on = [moment for moment in times[part] if moment]
            start = said_on[0] if said_on else None
            if start is None and conversation.started_on:
                start = clock.local(conversation.started_on, place)
            tally.add("sessions that run over several days, dated by their first message (--split day cuts them)",
                      len({moment.date() for moment in said_on}) > 1)
            parts.append((conversation, start, tuple(messages[part])))
    tally.add("sessions without a date, which every question may see", sum(start is None for _, start, _ in parts))
    parts.sort(key=lambda part: (str(part[1] or ""), part[0].title, [m.text for m in part[2]]))
    counts: Counter[str] = Counter()
    sessions = []
    for conversation, start, turns in parts:
        name = _name(conversation.title, start)
        counts[name] += 1
        while counts[name] > 1 and counts[f"{name} ({counts[name]})"]:  # a title may end in such a number
            counts[name] += 1
        unique = name if counts[name] == 1 else f"{name} ({counts[name]})"
        counts[unique] += counts[name] > 1
        sessions.append(ChatSession(unique, start, turns))
    return sessions


def _name(title: str, start: datetime | None) -> str:
    """Return the day and the title.

    >>> _name("Lisbon\\n trip", datetime(2024, 3, 1, 9))
    '2024-03-01 Lisbon trip'
    """
    label = printable_line(replace_surrogates(title))[:NAME_WIDTH].strip()
    return " ".join(filter(None, [f"{start:%Y-%m-%d}" if start else "", label])) or "chat"


def _cut(times: Sequence[datetime | None], cut: Cut, endless: bool) -> Iterator[slice]:
    """Yield the places of each part of a conversation; a message without a date stays with the one before it.

    times: of its messages, by the clock of the dates.
    """
    first, last = 0, None
    for place, moment in enumerate(times):
        if last and moment and (endless or not cut.endless_only) and (
                cut.days and moment.date() != last.date() or cut.pause is not None and moment - last >= cut.pause):
            yield slice(first, place)
            first = place
        last = moment or last
    if times:
        yield slice(first, len(times))


SESSIONS = "sessions.jsonl"


def write_folder(folder: Path, corpus: str, sessions: Iterable[ChatSession], *, replace: bool = False) -> bool:
    """Write sessions.jsonl; return False if the same sessions are there already.

    Raises MemlabError where other sessions are there and ``replace`` is false, and where the folder cannot be written.
    """
    content = "".join(json.dumps(_line(corpus, session), ensure_ascii=False) + "\n" for session in sessions)
    path = folder / SESSIONS
    try:
        if path.exists():
            if path.read_bytes() == content.encode():
                return False
            if not replace:
                raise MemlabError("other sessions are there already", where=str(path),
                                  fix="give another --out, or --replace")
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content)
    except OSError as fault:
        raise MemlabError(f"it cannot be written ({fault.strerror or fault})", where=str(path),
                          fix="give another --out") from fault
    return True


def _line(corpus: str, session: ChatSession) -> dict[str, object]:
    turns = [{"role": turn.role, **({"speaker": turn.speaker} if turn.speaker else {}), "text": turn.text}
             for turn in session.turns]
    return {"corpus": corpus, "session": session.name,
            "said_on": session.said_on and session.said_on.isoformat(timespec="minutes"), "turns": turns}
