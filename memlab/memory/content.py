"""The content of an open memory: its sessions on the disk and as tables, its store, votes and access counts."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, tzinfo

import polars as pl

from memlab.memory.choice import Turns
from memlab.memory.database import Database
from memlab.memory.feedback import Votes
from memlab.memory.pruning import Accesses
from memlab.memory.sessions import Entry, Session, SessionRows, said_digest, same_content
from memlab.memory.store import LiveStore
from memlab.memory.validity import Validity
from memlab.memory.working_set import WorkingSet
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import PLACED, Tables
from memlab.stages.query.where import Where, narrow
from memlab.store import Store
from memlab.support.errors import MemlabError
from memlab.support.latest import Latest
from memlab.support.machine import release_freed_memory
from memlab.support.text.display import plural, safe_line

MOST_NAMES, MOST_OF_NAME = 20, 80
"""Names of sessions that a warning shows, and characters of each."""

FILTERS = 8
"""Filters whose tables are cached until the sessions change: an application repeats the same ones."""


class Content:
    """The content of a memory from ``open`` to ``close``; whoever calls it holds the memory's lock.

    sessions: the working set. validity: what of it is valid on a day. accesses: how often each turn was returned.
    votes: which results were useful. store: that of vectors and replies. process: the one that has it open, or None.

    Args:
        database: That of the memory; it is opened here.
        pipeline: Stages that write.
        zone: Time zone of the days, as ``Clock`` takes it.
    """

    def __init__(self, database: Database, pipeline: Pipeline, zone: tzinfo | None) -> None:
        self._database = database
        self._rows = SessionRows(database)
        self.process: int | None = os.getpid()
        self._lock = threading.Lock()  # of the tables that are cached
        self._filtered = Latest[Tables](FILTERS)  # of what is valid, by filter
        self._first_question = False  # since it was opened or has changed: it reads vectors and makes indexes
        database.open()
        try:
            self.store = LiveStore(database)
            self.sessions = WorkingSet(self._rows.load(), pipeline, self.store, zone)
            self.sessions.next = self._rows.next()
            self.validity = Validity(self.sessions)
            self.accesses = Accesses(database)
            self.votes = Votes(database)
            if not database.is_cleared():
                self._clear()
        except BaseException:
            database.close()
            raise

    def is_open(self) -> bool:
        """Return whether this process has it open."""
        return self.process == os.getpid()

    def is_prepared(self) -> bool:
        """Return whether its sessions are in the order of time."""
        return self.is_open() and not self.sessions.has_changed()

    def prepare(self) -> None:
        """Put the sessions in the order of time, for questions."""
        if self.sessions.has_changed():
            self._first_question = True
            self._filtered.clear()
            self.store.forget_indexes()
        self.sessions.tables()

    def filter_tables(self, tables: Tables, where: Where) -> Tables:
        """Return the rows of a question's tables that pass a filter."""
        def make() -> Tables:
            rows = narrow(tables, self.sessions.fit(where)[tables["sessions"]["session"].to_numpy()], where)
            rows.name_by_origin(origin, repr(where), least=0)
            return rows

        origin = tables.digest(PLACED)
        with self._lock:
            passed = self._filtered.get((origin, repr(where)), make)
        return passed.updated({name: tables[name] for name in ("questions", "texts")})

    def question_store(self) -> Store:
        """Return the store for a question; raise MemlabError if its files are cut."""
        self.store.check_files()
        return self.store

    def note_question(self) -> None:
        """Drop the vectors of a question, and give the memory back to the system that the first one has needed."""
        self.store.forget_questions()
        if self._first_question:
            self._first_question = False
            release_freed_memory()

    def restore_numbers(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace positions in time by the numbers that ``add`` returned."""
        _, places = self.sessions.tables()
        return rows.with_columns(pl.Series("session", places["session"].gather(rows["session"])))

    def get(self, number: int) -> Session:
        """Return a session, without its forgotten turns."""
        return self._rows.find({number})[0].session

    def entries(self) -> list[Entry]:
        """Return all sessions, by number."""
        entries, _, _ = self._rows.read()
        return entries

    def add(self, sessions: Sequence[Session], unique: bool = False) -> Sequence[int]:
        """Save the sessions whose names are not there, all or none; return the numbers of all.

        ``unique`` leaves out those that say what another says for the same user, agent, room, source and kind.
        """
        new: dict[str, Entry] = {}
        said: dict[bytes, int] = {}  # of the new ones, for ``unique``
        entries: dict[int, Entry] = {}
        numbers = []
        for session in sessions:
            name = session.name
            if name is not None and (name in new or name in self.sessions.names):
                entry = new[name] if name in new else self._rows.find({self.sessions.names[name]})[0]
                if not self._is_version(session, entry):
                    raise MemlabError(f"there is a session '{name}' with other words or fields", where="session, name",
                                      fix="replace it by update, forget it first, or give this one another name")
            elif unique and (same := said.get(said_digest(session), self.sessions.find_words(session))) is not None:
                numbers.append(same)
                continue
            else:
                entry = Entry.new(self.sessions.next + len(entries), session)
                entries[entry.id] = entry
                said[said_digest(session)] = entry.id
                if name is not None:
                    new[name] = entry
            numbers.append(entry.id)
        if entries:
            part = self.sessions.write([*entries.values()])
            with self._database.transaction():
                self._rows.write(*entries.values())
            self.sessions.add([*entries.values()], part)
        return numbers

    def update(self, number: int, session: Session, keep_old: bool) -> int:
        """Save a session as the next version of another, which stays in the history or is forgotten; return its number.

        A session without a name gets that of the other. If both are the same, nothing changes.
        """
        (old,) = self._rows.find({number})
        if old.newer is not None:
            raise MemlabError(f"session {number} has a newer version", where="update",
                              fix=f"update session {old.newer}")
        session = replace(session, name=old.session.name) if session.name is None else session
        if same_content(old.session, session) and old.session.name == session.name:
            return number
        if session.name is not None and self.sessions.names.get(session.name, number) != number:
            raise MemlabError(f"there is a session '{session.name}'", where="session, name",
                              fix="give this one another name, or None to keep the old one")
        new = Entry.new(self.sessions.next, session)
        part = self.sessions.write([new])
        if keep_old:
            marked = replace(old, newer=new.id)
            with self._database.transaction():
                self._rows.write(marked, new)
            self.sessions.mark(marked)
            self.sessions.add([new], part)
        else:
            self.forget({number: {*old.numbers}}, [new], part)
        return new.id

    def read_again(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Save the sessions of a file or folder, all or none; return the numbers of those that the memory has then.

        What was forgotten of a session stays out of it. One that has gone on gets its new turns under its number, so
        that marks, votes and counts stay with the earlier ones. One that was changed here, or whose earlier turns are
        others in the file, is named in a warning and left as it is.

        entries: sessions with all turns of the file; their ids do not matter.
        """
        versions = [entry for entry in self.sessions.ended.values() if entry.newer is not None]
        numbers = {**self.sessions.origins, **{version.session.name or version.origin: version.id
                                               for version in versions}, **self.sessions.names}
        updated = {number for version in versions for number in (version.id, version.newer)}
        found, new, grown, left = [], list[Entry](), list[Entry](), list[str]()
        for entry in entries:
            name = entry.session.name or entry.origin
            forgotten = self._rows.forgotten(name)
            turns = {number: turn for number, turn in entry.turns().items() if number not in forgotten}
            if name in numbers:
                found.append(numbers[name])
                (held,) = self._rows.find({numbers[name]})
                if same_content(held.session, entry.session):
                    continue
                if held.id in updated or forgotten & {*held.numbers} or not entry.agrees(held):
                    left.append(entry.session.name or f"session {held.id}")
                elif turns.keys() - held.numbers:
                    grown.append(held.with_turns({**turns, **held.turns()}))
            elif turns or not forgotten:
                new.append(replace(entry.with_turns(turns), id=self.sessions.next + len(new)))
                found.append(new[-1].id)
        if left:
            names = ", ".join(safe_line(name, MOST_OF_NAME) for name in left[:MOST_NAMES])
            warnings.warn(f"{plural(len(left), 'session')} left as in the memory, since they were updated there, or "
                          f"have other turns or fields in the file: {names}{', ...' * (len(left) > MOST_NAMES)}. To "
                          "take what the file says: memory.update(name, session)", stacklevel=3)
        if new or grown:
            part = self.sessions.write([*grown, *new])
            with self._closed_on_failure():
                with self._database.transaction():
                    self._rows.write(*grown, *new)
                self.sessions.forget({entry.id: None for entry in grown})
                self.sessions.add([*grown, *new], part)
        return found

    def deprecate(self, turns: Turns, since: date | None) -> None:
        """Mark turns as valid no longer from a day on, in one transaction, or as valid again for None."""
        marked = []
        for entry in self._rows.find(turns):
            chosen = turns[entry.id]
            others = {turn: day for turn, day in entry.deprecated.items() if turn not in chosen}
            marked.append(replace(entry, deprecated=others if since is None else others | dict.fromkeys(chosen, since)))
        with self._database.transaction():
            self._rows.write(*marked)
        for entry in marked:
            self.sessions.mark(entry)
        self.validity = Validity(self.sessions)
        self.store.forget_indexes()  # of what was valid before

    def forget(self, forgotten: Turns, new: Sequence[Entry] = (), part: Tables | None = None) -> int:
        """Forget turns, with all earlier versions of their sessions, and save new sessions, in one transaction.

        ``part`` are the tables of the new sessions. Returns how many turns went.
        """
        forgotten = {**forgotten, **{old: self.sessions.turns[old] for old in self.sessions.earlier(*forgotten)}}
        entries = self._rows.find(forgotten)
        left = {entry.id: entry.without(forgotten[entry.id]) for entry in entries}
        with self._closed_on_failure():
            with self._database.transaction():
                for entry in entries:
                    self._rows.remember_forgotten(entry, forgotten[entry.id] or {-1})
                self._rows.replace(left)
                self.accesses.forget(forgotten)
                self.votes.forget(forgotten)
                self._rows.write(*new)
                self.sessions.forget(left)
            if part is not None:
                self.sessions.add(new, part)
            self._clear()
        return sum(map(len, forgotten.values()))

    @contextmanager
    def _closed_on_failure(self) -> Iterator[None]:
        """Close the content if the block raises between the disk and the tables in memory.

        The disk is consistent in any case: the next use reads it again and finishes the work.
        """
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the folder for other processes."""
        if self.process == os.getpid():
            self.store.close()
        self._database.close()
        self.process = None

    def _is_version(self, session: Session, entry: Entry) -> bool:
        """Return whether a session has the content of another, or of an earlier version of it."""
        earlier = self._rows.find(self.sessions.earlier(entry.id))
        return any(same_content(version.session, session) for version in (entry, *earlier))

    def _clear(self) -> None:
        """Erase forgotten sessions from the folder."""
        self._filtered.clear()
        self.validity = Validity(self.sessions)  # its tables may hold them
        self.store.forget_indexes()
        self.store.keep(self.sessions.text_ids())
        self._database.clear()
