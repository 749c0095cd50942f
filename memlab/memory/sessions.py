"""The sessions of a live memory in its database, each row with a digest of its content."""

from __future__ import annotations

import hashlib
import json
import secrets
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from functools import reduce
from operator import xor
from typing import Any

from memlab.data.fields import FIELDS, ROLES, brief, read_metadata, read_name
from memlab.memory.database import Database
from memlab.support.clock import Clock, midnight, read_moment
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.foreign import MOST_BYTES
from memlab.support.text.display import plural, replace_surrogates

_TOTAL = "SELECT sessions, digest FROM counter"
_SET_TOTAL = "UPDATE counter SET sessions = ?, digest = ?"


class SessionRows:
    """The table of sessions: number, session as JSON, digest; and the number of its rows and the sum of their digests.

    The last two tell a copy that was made while a process changed the memory: sessions may be missing there.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> list[Entry]:
        """Return all entries by number; rows that do not match their digest are named in a warning and deleted.

        Raises MemlabError if sessions are missing.
        """
        entries, damaged, total = self.read()
        if damaged:
            warnings.warn(f"{self._database.path}: session {', '.join(map(str, damaged))} is damaged (the disk may be "
                          "faulty) and is dropped", stacklevel=2)
            with self._database.transaction():
                self._database.note_forgotten()
                self._database.run("DELETE FROM sessions WHERE id = ?", *((number,) for number in damaged))
                self._database.run(_SET_TOTAL, total)
        return entries

    def read(self) -> tuple[list[Entry], list[int], tuple[int, int]]:
        """Return all entries by number, the numbers of damaged rows, and how many are whole, with their digest.

        Changes nothing. Raises MemlabError if sessions are missing.
        """
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT id, content, digest FROM sessions ORDER BY id")
        whole = [(content, digest) for number, content, digest in rows if digest == _digest(number, content)]
        damaged = [number for number, content, digest in rows if digest != _digest(number, content)]
        total = len(whole), reduce(xor, (_number(digest) for _, digest in whole), 0)
        if not damaged and self._database.rows(_TOTAL) != [total]:
            raise self._database.damage_error()
        with self._database.reading():
            return [Entry.of_row(json.loads(content)) for content, _ in whole], damaged, total

    def next(self) -> int:
        """Return the number of the next session, which is beyond all that are there."""
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT next, (SELECT max(id) FROM sessions) FROM counter")
        with self._database.reading():
            ((number, last),) = rows
            return int(number) if last is None else max(number, last + 1)

    def write(self, *entries: Entry) -> None:
        """Write entries, in place of those with the same numbers, within a transaction."""
        self._replace([entry.id for entry in entries], entries)
        self._database.run("UPDATE counter SET next = max(next, ?)", *((entry.id + 1,) for entry in entries))

    def replace(self, entries: Mapping[int, Entry | None]) -> None:
        """Replace entries by what is left of them, None for nothing, within a transaction."""
        self._database.note_forgotten()
        self._replace(entries, filter(None, entries.values()))

    def _replace(self, removed: Iterable[int], added: Iterable[Entry]) -> None:
        """Remove and add rows within a transaction."""
        totals: list[tuple[Any, ...]] = self._database.rows(_TOTAL)
        ((count, total),) = totals
        for number in removed:
            for digest, in self._database.rows("SELECT digest FROM sessions WHERE id = ?", number):
                count, total = count - 1, total ^ _number(digest)
            self._database.run("DELETE FROM sessions WHERE id = ?", (number,))
        for entry in added:
            content = json.dumps(entry.row())
            digest = _digest(entry.id, content)
            self._database.run("INSERT INTO sessions VALUES (?, ?, ?)", (entry.id, content, digest))
            count, total = count + 1, total ^ _number(digest)
        self._database.run(_SET_TOTAL, (count, total))

    def remember_forgotten(self, entry: Entry, turns: Iterable[int]) -> None:
        """Note within a transaction that some turns of a session are forgotten, under all names that files have for it.

        A name is there as a digest with a key that only the database holds. A session without turns has turn -1.
        """
        self._database.run("INSERT OR IGNORE INTO forgotten VALUES (?, ?)", *(
            (self._secret(name), turn) for name in entry.names_in_files() for turn in turns))

    def forgotten(self, name: str) -> set[int]:
        """Return the turns that are forgotten of the session that files know by a name."""
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT turn FROM forgotten WHERE session = ?",
                                                          self._secret(name))
        return {turn for turn, in rows}

    def _secret(self, name: str) -> bytes:
        keys: list[tuple[Any, ...]] = self._database.rows("SELECT key FROM forgotten_key")
        with self._database.reading():
            ((key,),) = keys
            return hashlib.blake2b(name.encode(), digest_size=16, key=key).digest()

    def find(self, numbers: Iterable[int]) -> list[Entry]:
        """Read the entries with these numbers."""
        rows: list[tuple[Any, ...]] = [row for number in sorted(numbers) for row in self._database.rows(
            "SELECT content FROM sessions WHERE id = ?", number)]
        return [Entry.of_row(json.loads(content)) for (content,) in rows]


def _number(digest: Any) -> int:
    """Return a digest as the number that it adds to the sum, by exclusive or."""
    return int.from_bytes(digest, "little", signed=True)


def _digest(number: int, content: object) -> bytes:
    return hashlib.blake2b(f"{number} {content}".encode("utf-8", "replace"), digest_size=8).digest()


_AS_TURNS = 'write turns as [("user", text)] or [Turn("user", text, speaker)]'


@dataclass(frozen=True)
class Turn:
    """A turn of a session; people who talk to each other are all users, and have names.

    A turn that is a chunk of a document has the ``offset`` of its first character there; in a PDF, the ``page``, from
    whose beginning the offset counts.
    """

    role: str
    text: str
    speaker: str | None = None
    offset: int | None = None
    page: int | None = None

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            role = brief(self.role)
            raise MemlabError(f"there is no role {role}", where="turn", fix=did_you_mean(role, ROLES))
        for what, value in (("text", self.text), ("speaker", self.speaker)):
            if not isinstance(value, str) and not (what == "speaker" and value is None):
                raise MemlabError(f"expected text, got {type(value).__name__}", where=f"turn, {what}", fix=_AS_TURNS)
            if isinstance(value, str):
                object.__setattr__(self, what, replace_surrogates(value))
        if len(self.text) > MOST_BYTES:  # else an export could not be read again
            raise MemlabError(f"it has {len(self.text):,} characters, the limit is {MOST_BYTES:,}", where="turn, text",
                              fix="cut it into several turns")


@dataclass(frozen=True, init=False)
class Session:
    """One chat or meeting: its date or time, or None if it is unknown, and its turns.

    A time with a UTC offset is a moment, one without the reading of a wall clock; a memory holds either
    (``memlab.support.clock``).

    ``name`` is chosen by the caller. A name that is there already is not added again, so that an addition may be
    repeated safely; without a name the same words are a second session.

    ``user``, ``agent``, ``room``, ``source`` and ``kind`` are names of your own, and ``metadata`` is an object of
    JSON.

    >>> Session("2023-05-20", [("user", "I adopted a cat."), Turn("assistant", "Lovely!")]).turns[0].text
    'I adopted a cat.'
    """

    said_on: date | datetime | None
    turns: tuple[Turn, ...]
    name: str | None
    user: str | None
    agent: str | None
    room: str | None
    source: str | None
    kind: str | None
    metadata: Mapping[str, Any] = field(hash=False)

    def __init__(self, said_on: datetime | date | str | None, turns: Iterable[Turn | Sequence[str | None]],
                 name: str | None = None, *, user: str | None = None, agent: str | None = None, room: str | None = None,
                 source: str | None = None, kind: str | None = None, metadata: Mapping[str, Any] | None = None
                 ) -> None:
        object.__setattr__(self, "said_on", None if said_on is None else read_moment(said_on, "session, said_on"))
        if isinstance(turns, str) or not isinstance(turns, Iterable):
            raise MemlabError(f"expected a list of turns, got {type(turns).__name__}", where="session", fix=_AS_TURNS)
        object.__setattr__(self, "turns", tuple(t if isinstance(t, Turn) else _turn(t) for t in turns))
        for what, value in (("name", name), *zip(FIELDS, (user, agent, room, source, kind), strict=True)):
            object.__setattr__(self, what, read_name(value, f"session, {what}"))
        if self.name == "":
            raise MemlabError("the name is empty", where="session, name", fix="give one, or None")
        object.__setattr__(self, "metadata", read_metadata(metadata))

    def fields(self) -> dict[str, str]:
        """Return the names that the session has besides ``name``."""
        return {what: value for what in FIELDS if (value := getattr(self, what)) is not None}

    def with_missing(self, other: Session, metadata: bool) -> Session:
        """Return the session with the date, name and fields of another where it has none, and perhaps its metadata."""
        missing = {what: getattr(other, what) for what in ("said_on", "name", *FIELDS) if getattr(self, what) is None}
        return replace(self, **missing, metadata=other.metadata if metadata else self.metadata)


def _turn(parts: Sequence[str | None]) -> Turn:
    if isinstance(parts, str) or not isinstance(parts, Sequence) or len(parts) not in (2, 3):
        raise MemlabError(f"{brief(parts, 60)} is no turn", where="session", fix=_AS_TURNS)
    role, text, *speaker = parts
    return Turn(role, text, *speaker)  # type: ignore[arg-type]  # checked by Turn itself


ALWAYS = date.min
"""The first day without a turn that no question is to find, whatever its day."""


@dataclass(frozen=True)
class Entry:
    """A session and its number, without its forgotten turns.

    numbers: the number of each turn that is left, counted from 0 when the session was added. deprecated: the number of
    each turn that is no longer valid -> the first day without it, or ``ALWAYS``. newer: the number of the session that
    is the next version of this one. origin: by which an export knows a session without a name; random, made once.
    """

    id: int
    session: Session
    numbers: tuple[int, ...] = ()
    deprecated: Mapping[int, date] = field(default_factory=dict, hash=False)
    newer: int | None = None
    origin: str = field(default_factory=lambda: secrets.token_hex(8), compare=False)

    @classmethod
    def new(cls, number: int, session: Session) -> Entry:
        """Return the entry of a new session."""
        return cls(number, session, tuple(range(len(session.turns))))

    @classmethod
    def of_row(cls, row: dict[str, Any]) -> Entry:
        """Return the entry of a row that ``row`` returned."""
        turns = [Turn(role, text, speaker, *place) for _, role, speaker, text, *place in row["turns"]]
        session = Session(row["said_on"], turns, row["name"], metadata=row["metadata"], **row["fields"])
        deprecated = {turn: date.fromisoformat(day) for turn, day in row["deprecated"]}
        return cls(row["id"], session, tuple(turn[0] for turn in row["turns"]), deprecated, row["newer"], row["origin"])

    def row(self) -> dict[str, Any]:
        """Return the entry as plain JSON values."""
        said_on = self.session.said_on
        turns = [[n, t.role, t.speaker, t.text, *([] if t.offset is None and t.page is None else [t.offset, t.page])]
                 for n, t in zip(self.numbers, self.session.turns)]
        return {"id": self.id, "name": self.session.name, "said_on": said_on and said_on.isoformat(), "turns": turns,
                "fields": self.session.fields(), "metadata": dict(self.session.metadata),
                "deprecated": [(turn, day.isoformat()) for turn, day in self.deprecated.items()], "newer": self.newer,
                "origin": self.origin}

    def names_in_files(self) -> list[str]:
        """Return by what files know the session: its name, and its origin if an export leaves the name out."""
        names = [] if self.session.name is None else [self.session.name]
        return names if names and self.newer is None else [*names, self.origin]

    def turns(self) -> dict[int, Turn]:
        """Return the turns by number."""
        return dict(zip(self.numbers, self.session.turns))

    def with_turns(self, turns: Mapping[int, Turn]) -> Entry:
        """Return the entry with other turns, by number."""
        numbers = tuple(sorted(turns))
        return replace(self, session=replace(self.session, turns=tuple(turns[number] for number in numbers)),
                       numbers=numbers, deprecated={n: day for n, day in self.deprecated.items() if n in turns})

    def without(self, turns: Iterable[int]) -> Entry | None:
        """Return the entry without some turns, or None if none is left."""
        gone = set(turns)
        left = {number: turn for number, turn in self.turns().items() if number not in gone}
        return self.with_turns(left) if left else None

    def agrees(self, other: Entry) -> bool:
        """Return whether two sessions are alike, but for turns whose number only one of them has."""
        mine, others = self.turns(), other.turns()
        return same_content(self.with_turns({n: mine[n] for n in mine if n in others}).session,
                            other.with_turns({n: others[n] for n in others if n in mine}).session)


def turn_ends(entries: Iterable[Entry], days: Mapping[int, date | None]) -> dict[int, dict[int, date]]:
    """Return session -> turn -> the first day on which it is not valid, or ``ALWAYS``, of those that have one.

    The day on which a newer version was said is the first without all older ones; if that has no date, no day is with
    them.

    entries: at least those that have an end. days: on which the sessions were said.
    """
    replaced: dict[int, date] = {}
    ends: dict[int, dict[int, date]] = {}
    for entry in sorted(entries, key=lambda entry: -entry.id):  # a newer version has a higher number
        if entry.newer is not None:  # a damaged one is not there
            day = days.get(entry.newer) or ALWAYS
            replaced[entry.id] = min(day, replaced.get(entry.newer, day))
        for turn in entry.numbers:
            known = [of[key] for of, key in ((replaced, entry.id), (entry.deprecated, turn)) if key in of]
            if known:
                ends.setdefault(entry.id, {})[turn] = min(known)
    return ends


def valid(entries: Iterable[Entry], clock: Clock) -> list[Entry]:
    """Return the entries without what is not valid today; an earlier version whose newer one is to come loses its name.

    Warns of what ends on a later day, which the sessions themselves do not say.
    """
    entries = list(entries)
    days = {entry.id: clock.local(entry.session.said_on, f"session {entry.id}").date()
            for entry in entries if entry.session.said_on}
    ends, today = turn_ends(entries, days), clock.now().date()
    gone = {number: [turn for turn, day in of.items() if day <= today] for number, of in ends.items()}
    left = [entry.without(gone[entry.id]) if gone.get(entry.id) else entry for entry in entries]
    if later := sum(day > today for of_session in ends.values() for day in of_session.values()):
        warnings.warn(f"{plural(later, 'turn')} will not be valid from a later day on, which the lines do not say",
                      stacklevel=2)
    return [entry if entry.newer is None else replace(entry, session=replace(entry.session, name=None))
            for entry in left if entry and (entry.numbers or entry.newer is None)]


def said_digest(session: Session) -> bytes:
    """Return a digest of the turns of a session, and of its fields without name, date and metadata."""
    turns = [(turn.role, turn.speaker, turn.text) for turn in session.turns]
    return hashlib.blake2b(json.dumps([session.fields(), turns], sort_keys=True).encode(), digest_size=16).digest()


def same_content(a: Session, b: Session) -> bool:
    """Return whether two sessions say the same at the same time, and have the same fields and metadata."""
    one, other = (replace(session, said_on=session.said_on and midnight(session.said_on), name=None)
                  for session in (a, b))
    return one == other
