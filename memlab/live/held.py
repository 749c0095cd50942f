"""A live memory's sessions while it is loaded: what was written of them, their numbers and names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from memlab.errors import MemlabError, did_you_mean
from memlab.live import written
from memlab.live.session import Entry
from memlab.pipeline import Pipeline
from memlab.store import Store
from memlab.tables import Tables

PARTS = 32
"""Small parts are put together when there are so many, and so are their sums: a table a session would fill memory."""


class Held:
    """All sessions that are left, as tables; adding one costs what it is, putting all together what they are.

    names: the number of every named session. turns: the numbers of every session's turns. next: what the next session
    is numbered; a number is given once.
    """

    def __init__(self, entries: Sequence[Entry], pipeline: Pipeline, store: Store) -> None:
        self._pipeline, self._store = pipeline, store
        self.names: dict[str, int] = {}
        self.turns: dict[int, set[int]] = {}
        self.next = 0
        # sessions numbered as they came: those of the last question, and since then by how many a part holds
        self._asked = written.write(entries, pipeline, store)
        self._since: list[list[Tables]] = []
        self._in_time: tuple[Tables, pl.DataFrame] | None = None
        for entry in entries:
            self._enter(entry)

    def write(self, entry: Entry) -> Tables:
        """Run the stages that look at a session alone, and encode its keys; nothing is held yet."""
        part = written.write([entry], self._pipeline, self._store)
        written.encode(part, self._pipeline, self._store)
        return part

    def add(self, entry: Entry, part: Tables) -> None:
        """Hold what was written of a new session."""
        self._in_time = None
        self._enter(entry)
        for level in range(len(self._since) + 1):
            if level == len(self._since):
                self._since.append([])
            self._since[level].append(part)
            if len(self._since[level]) < PARTS:
                return
            part, self._since[level] = written.together(self._since[level]), []

    def forget(self, left: Mapping[int, Entry]) -> pl.Series:
        """Put what is left of some sessions in their place; return the hashes of the texts that nothing holds any more.

        When this raises, all is as before.
        """
        before = self._all()
        some = [entry for entry in left.values() if entry.session is not None]
        rest = written.without(before, left)
        after = written.together([rest, written.write(some, self._pipeline, self._store)]) if some else rest
        self._asked, self._since, self._in_time = after, [], None
        self.names = {name: number for name, number in self.names.items() if number not in left}
        for entry in left.values():
            del self.turns[entry.id]
            self._enter(entry)
        return before["texts"].join(after["texts"], on="hash", how="anti")["hash"]

    def changed(self) -> bool:
        """Tell whether sessions came or went since ``tables`` was called."""
        return self._in_time is None

    def tables(self) -> tuple[Tables, pl.DataFrame]:
        """Return all that was written, sessions numbered in the order of time; and (session, position)."""
        if self._in_time is None:
            self._asked, self._since = self._all(), []
            self._in_time = written.in_time(self._asked)
        return self._in_time

    def number(self, session: int | str) -> int:
        """Return a session's number; raises MemlabError if there is no such session."""
        number = self.names.get(session) if isinstance(session, str) else session
        if number is None or number not in self.turns:
            raise MemlabError(f"there is no session {session!r}", where="session",
                              fix=did_you_mean(session, self.names) if isinstance(session, str) and self.names else "")
        return number

    def sessions(self) -> pl.DataFrame:
        """Return (session, name, said_on, turns), a row a session in the order of time; turns is their number."""
        tables, places = self.tables()
        names = {number: name for name, number in self.names.items()}
        numbers = places["session"]
        return pl.DataFrame({
            "session": numbers, "name": pl.Series([names.get(n) for n in numbers], dtype=pl.String),
            "said_on": tables["sessions"]["said_on"],
            "turns": pl.Series([len(self.turns[n]) for n in numbers], dtype=pl.Int32)})

    def _all(self) -> Tables:
        return written.together([self._asked, *(part for level in reversed(self._since) for part in level)])

    def _enter(self, entry: Entry) -> None:
        self.next = max(self.next, entry.id + 1)
        if entry.session is not None:
            self.turns[entry.id] = set(entry.numbers)
            if entry.session.name is not None:
                self.names[entry.session.name] = entry.id
