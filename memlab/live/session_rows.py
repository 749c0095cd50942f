"""The sessions of a live memory in its database, each row with a digest of its content."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from memlab.live.database import Database
from memlab.live.sessions import Entry


class SessionRows:
    """The table of sessions: number, session as JSON, digest."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def load(self) -> list[Entry]:
        """Return all entries by number; rows that do not match their digest are named in a warning and deleted."""
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT id, content, digest FROM sessions ORDER BY id")
        entries = [Entry.of_row(json.loads(content)) for number, content, digest in rows
                   if digest == _digest(number, content)]
        if damaged := [number for number, content, digest in rows if digest != _digest(number, content)]:
            warnings.warn(f"{self._database.path}: session {', '.join(map(str, damaged))} is damaged (the disk may be "
                          "faulty) and is dropped", stacklevel=2)
            if not self._database.read_only:
                with self._database.transaction():
                    self.replace({number: Entry(number, None) for number in damaged})
                self._database.shrink()
        return entries

    def next(self) -> int:
        """Return the number of the next session, which is beyond all that are there."""
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT next, (SELECT max(id) FROM sessions) FROM counter")
        if len(rows) != 1 or type(rows[0][0]) is not int or not 0 <= rows[0][0] < 2**31:
            raise self._database.damaged()
        number, last = rows[0]
        return int(number) if last is None else max(number, last + 1)

    def append(self, entry: Entry) -> None:
        """Write a new entry; if this raises, nothing was added."""
        with self._database.transaction():
            self.write([entry])
            self._database.run("UPDATE counter SET next = max(next, ?)", (entry.id + 1,))

    def write(self, entries: Iterable[Entry]) -> None:
        """Write entries within a transaction, in the place of those with the same numbers."""
        contents = [(entry.id, json.dumps(entry.row())) for entry in entries]
        self._database.run("INSERT OR REPLACE INTO sessions VALUES (?, ?, ?)",
                           *((number, content, _digest(number, content)) for number, content in contents))

    def replace(self, entries: Mapping[int, Entry]) -> None:
        """Replace entries within a transaction; those whose session is forgotten are deleted."""
        self._database.run("DELETE FROM sessions WHERE id = ?", *((number,) for number in entries))
        self.write(entry for entry in entries.values() if entry.session is not None)

    def find(self, numbers: Iterable[int]) -> list[Entry]:
        """Read the entries with these numbers."""
        rows: list[tuple[Any, ...]] = [row for number in sorted(numbers) for row in self._database.rows(
            "SELECT content FROM sessions WHERE id = ?", number)]
        return [Entry.of_row(json.loads(content)) for (content,) in rows]


def _digest(number: int, content: object) -> bytes:
    return hashlib.blake2b(f"{number} {content}".encode("utf-8", "replace"), digest_size=8).digest()
