"""The sessions of a live memory in its database, each row with a digest of its content."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import xor
from typing import Any

from memlab.live.database import Database
from memlab.live.sessions import Entry

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
        rows: list[tuple[Any, ...]] = self._database.rows("SELECT id, content, digest FROM sessions ORDER BY id")
        entries = [Entry.of_row(json.loads(content)) for number, content, digest in rows
                   if digest == _digest(number, content)]
        damaged = [number for number, content, digest in rows if digest != _digest(number, content)]
        digests = [digest for number, content, digest in rows if digest == _digest(number, content)]
        total = len(digests), reduce(xor, map(_number, digests), 0)
        if damaged:
            warnings.warn(f"{self._database.path}: session {', '.join(map(str, damaged))} is damaged (the disk may be "
                          "faulty) and is dropped", stacklevel=2)
            if not self._database.read_only:
                with self._database.transaction():
                    self._database.note_forgotten()
                    self._database.run("DELETE FROM sessions WHERE id = ?", *((number,) for number in damaged))
                    self._database.run(_SET_TOTAL, total)
        elif self._database.rows(_TOTAL) != [total]:
            raise self._database.damaged()
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
            self._replace((), [entry])
            self._database.run("UPDATE counter SET next = max(next, ?)", (entry.id + 1,))

    def replace(self, entries: Mapping[int, Entry]) -> None:
        """Replace entries within a transaction; those whose session is forgotten are deleted."""
        self._database.note_forgotten()
        self._replace(entries, (entry for entry in entries.values() if entry.session is not None))

    def _replace(self, removed: Iterable[int], added: Iterable[Entry]) -> None:
        """Remove and add rows within a transaction."""
        totals: list[tuple[Any, ...]] = self._database.rows(_TOTAL)
        if len(totals) != 1 or not all(type(number) is int for number in totals[0]):
            raise self._database.damaged()
        count, total = totals[0]
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
