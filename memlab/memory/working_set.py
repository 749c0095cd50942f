"""The working set of a live memory: all its sessions in memory, as tables and by name, field and number."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.data.fields import FIELDS, brief
from memlab.memory.results import RESULT
from memlab.memory.session_tables import chronological, concat, encode, without, write
from memlab.memory.sessions import Entry, Session, said_digest
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.tables import PLACED, Tables
from memlab.stages.query.where import Where, fits
from memlab.store import Store
from memlab.support.clock import Clock
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.text.display import plural, replace_surrogates

LISTED: dict[str, Any] = {"session": pl.Int32, "name": pl.String, "said_on": pl.Datetime("us"), "turns": pl.Int32,
                          **dict.fromkeys((*FIELDS, "metadata"), pl.String), "deprecated": pl.Int32, "newer": pl.Int32}
"""Columns of a list of sessions."""

MOST_ADDITIONS = 64
"""Additions whose tables are apart: a table for each session would fill memory."""


class WorkingSet:
    """All sessions that are not forgotten, as tables.

    names: the number of every named session, of its latest version. origins: the number of every session by its origin.
    turns: the numbers of every session's turns. next: the number of the next session; numbers are never used again.
    ended: the entries of which something is no longer valid, by number. zone: time zone of the days, as ``Clock`` takes
    it.
    """

    def __init__(self, entries: Sequence[Entry], pipeline: Pipeline, store: Store, zone: tzinfo | None = None) -> None:
        self._pipeline, self._store, self._zone = pipeline, store, zone
        self._times: dict[int, datetime] = {}  # of sessions that have more than a date; all of one kind
        self._fields: dict[int, dict[str, Any]] = {}  # with name and metadata, of sessions that have any
        self._places: dict[int, dict[int, tuple[int | None, int | None]]] = {}  # of documents: (offset, page) by turn
        self.names: dict[str, int] = {}
        self.origins: dict[str, int] = {}
        self.turns: dict[int, set[int]] = {}
        self.ended: dict[int, Entry] = {}
        self._said: dict[bytes, list[int]] = {}  # valid sessions by what they say, and for whom
        self.next = 0
        self._warned_of_cut_texts = False
        self._base = write(entries, pipeline, store, self.clock())  # under their own numbers
        self._additions: list[Tables] = []  # the latest
        self._chronological: tuple[Tables, pl.DataFrame] | None = None
        for entry in entries:
            self._enter(entry)

    def write(self, entries: Sequence[Entry]) -> Tables:
        """Return the tables of sessions and encode their keys at once, without adding them."""
        part = write(entries, self._pipeline, self._store, self.clock())
        cut = encode(part, self._pipeline, self._store)
        if cut and not self._warned_of_cut_texts:
            warnings.warn(f"the encoder reads only the beginning of {plural(cut, 'text')} of this addition, so "
                          "searches by vectors do not see what follows there (said once)", stacklevel=5)
            self._warned_of_cut_texts = True
        return part

    def add(self, entries: Sequence[Entry], part: Tables) -> None:
        """Add new sessions with the tables that ``write`` returned."""
        self._chronological = None
        for entry in entries:
            self._enter(entry)
        self._additions.append(part)
        if len(self._additions) > MOST_ADDITIONS:
            self._base, self._additions = self._all(), []

    def forget(self, left: Mapping[int, Entry | None]) -> None:
        """Replace some sessions by their remaining turns, None for none; if this raises, nothing has changed."""
        self._base, self._additions, self._chronological = self.shorten(left, self._store), [], None
        self.names, self.origins = ({name: number for name, number in known.items() if number not in left}
                                    for known in (self.names, self.origins))
        self._said = {said: others for said, numbers in self._said.items()
                      if (others := [number for number in numbers if number not in left])}
        for number, entry in left.items():
            for known in (self.turns, self._times, self._fields, self._places, self.ended):
                known.pop(number, None)
            if entry:
                self._enter(entry)

    def shorten(self, left: Mapping[int, Entry | None], store: Store) -> Tables:
        """Return the tables of all sessions, some of them replaced by their remaining turns, under their numbers."""
        after = without(self._all(), left)
        written = [*filter(None, left.values())]
        return concat([after, write(written, self._pipeline, store, self.clock())]) if written else after

    def mark(self, entry: Entry) -> None:
        """Take over what has changed about a session but not in it: which turns are valid, and its next version."""
        self.ended.pop(entry.id, None)
        said, name = said_digest(entry.session), entry.session.name
        if entry.id in (saying := self._said.get(said, [])):
            self._said[said] = [number for number in saying if number != entry.id]
        if name is not None and self.names.get(name) == entry.id:
            del self.names[name]  # unless it is still the latest version
        self._enter(entry)

    def replaced(self) -> set[int]:
        """Return the numbers of the sessions that have a newer version."""
        return {number for number, entry in self.ended.items() if entry.newer is not None}

    def earlier(self, *sessions: int) -> list[int]:
        """Return the numbers of the earlier versions of sessions, the latest first of each."""
        before = {entry.newer: old for old, entry in self.ended.items() if entry.newer is not None}
        versions = []
        for session in sessions:
            number = session
            while (number := before.get(number, -1)) >= 0:
                versions.append(number)
        return versions

    def text_ids(self) -> pl.Series:
        """Return the ids of the texts of all sessions."""
        return self._all()["texts"]["text_id"]

    def clock(self) -> Clock:
        """Return a clock that refuses times of another kind than the sessions have."""
        clock = Clock(self._zone)
        for number, said_on in islice(self._times.items(), 1):
            clock.local(said_on, f"session {number}")
        return clock

    def moment(self, now: object) -> datetime:
        """Return a time as the clock shows it; None is the present moment."""
        clock = self.clock()
        return clock.now() if now is None else clock.local(now, "now")

    def has_changed(self) -> bool:
        """Return whether sessions were added or forgotten since ``tables`` was called."""
        return self._chronological is None

    def tables(self) -> tuple[Tables, pl.DataFrame]:
        """Return the tables of all sessions, numbered in the order of time; and (session, position)."""
        if self._chronological is None:
            self._base, self._additions = self._all(), []
            self._chronological = chronological(self._base, self._times)
            self._chronological[0].digest(PLACED)  # cached with the tables, for all questions
        return self._chronological

    def number(self, session: int | str) -> int:
        """Return a session's number, given that or its name; raise MemlabError if there is no such session."""
        number = self.names.get(replace_surrogates(session)) if isinstance(session, str) else session.__index__()
        if number is None or number not in self.turns:
            raise MemlabError(f"there is no session {brief(session)}", where="session",
                              fix=did_you_mean(session, self.names) if isinstance(session, str) and self.names
                              else "list() returns the numbers and names of all sessions")
        return number

    def find_words(self, session: Session) -> int | None:
        """Return the first session that says the same for the same user, agent, room, source and kind, if any."""
        return next(iter(self._said.get(said_digest(session), ())), None)

    def name_at(self, position: int) -> str | None:
        """Return the name of the session at a position in the order of time, if it has one."""
        _, places = self.tables()
        name: str | None = self._fields.get(places["session"][position], {}).get("name")
        return name

    def fit(self, where: Where) -> NDArray[np.bool_]:
        """Return which sessions, in the order of time, have one of the values of each field of a filter, (n,)."""
        _, places = self.tables()
        return fits([self._fields.get(number, {}) for number in places["session"]], where)

    def turns_that_fit(self, where: Where) -> pl.DataFrame:
        """Return (session, position, turn), the turns that fit in the order of time; position is the session's there.

        Unless the filter has a role, a session without turns has a row too, with a turn of null.
        """
        tables, places = self.tables()
        sessions = tables["sessions"].select(pl.col("session").alias("position"), "said_on").filter(
            pl.Series(self.fit(where)), where.within()).join(places, on="position", maintain_order="left")
        turns = tables["turns"].filter(where.of_role()).select(pl.col("session").alias("position"), "turn")
        found = sessions.join(turns, on="position", how="left" if where.roles is None else "inner",
                              maintain_order="left")
        return found.select("session", "position", "turn")

    def sessions(self) -> pl.DataFrame:
        """Return one row per session in the order of time, with the columns of ``LISTED``.

        Metadata are JSON; turns and deprecated are how many, newer is the next version. Null is none.
        """
        tables, places = self.tables()
        rows = [{"session": number, "said_on": said_on, "turns": len(self.turns[number]),
                 **self._fields.get(number, {})}
                for number, said_on in zip(places["session"], tables["sessions"]["said_on"])]
        for row in rows:
            row["metadata"] = json.dumps(row["metadata"], ensure_ascii=False) if "metadata" in row else None
            if entry := self.ended.get(row["session"]):
                row.update(deprecated=len(entry.deprecated) or None, newer=entry.newer)
        return pl.DataFrame(rows, schema=LISTED)

    def with_chunks(self, results: pl.DataFrame) -> pl.DataFrame:
        """Return results with the chunk of a document in which each begins: index, total, offset, page.

        ``index`` counts from 0 the chunks that are not forgotten, of which ``total`` are left. What is of no document
        has null. Sessions have the numbers that ``add`` returned.
        """
        chunks = [self._chunk(session, turns) for session, turns in results.select("session", "turns").iter_rows()]
        return results.with_columns(pl.Series("chunk", chunks, RESULT["chunk"]))

    def _chunk(self, session: int, turns: Sequence[int]) -> dict[str, int | None] | None:
        places = self._places.get(session)
        if not places:
            return None
        offset, page = places[min(turns)]
        return {"index": [*places].index(min(turns)), "total": len(places), "offset": offset, "page": page}

    def _all(self) -> Tables:
        return concat([self._base, *self._additions])

    def _enter(self, entry: Entry) -> None:
        self.next = max(self.next, entry.id + 1)
        self.turns[entry.id] = set(entry.numbers)
        self.origins[entry.origin] = entry.id
        if not entry.deprecated and entry.newer is None:
            self._said.setdefault(said_digest(entry.session), []).append(entry.id)
        if isinstance(entry.session.said_on, datetime):
            self._times[entry.id] = entry.session.said_on
        if any(turn.offset is not None for turn in entry.session.turns):
            self._places[entry.id] = {number: (turn.offset, turn.page)
                                      for number, turn in zip(entry.numbers, entry.session.turns)}
        fields: dict[str, Any] = dict(entry.session.fields())
        if entry.session.metadata:
            fields["metadata"] = dict(entry.session.metadata)
        if entry.session.name is not None:
            fields["name"] = entry.session.name
            if entry.newer is None:
                self.names[entry.session.name] = entry.id
        if fields:
            self._fields[entry.id] = fields
        if entry.deprecated or entry.newer is not None:
            self.ended[entry.id] = entry
