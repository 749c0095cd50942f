"""The working set of a memory: its tables in memory, sessions from messages, and techniques that need adapting.

Names of kinds of memories that a young memory does not hold yet are left out of its pipeline. In an experiment, a name
that fits no kind of memory is a fault. In a live memory the first session may hold no turn of the user, so such a name
is no mistake.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, tzinfo
from itertools import islice
from typing import Any, SupportsIndex

import polars as pl

from memlab.chats.conversation import Tally
from memlab.chats.messages import read_message
from memlab.data.benchmarks import Builder
from memlab.errors import MemlabError, did_you_mean
from memlab.live.fields import FIELDS, check_fields
from memlab.live.results import RESULT
from memlab.live.sessions import Entry, Session, Turn, said_digest
from memlab.live.where import FieldValues, Where
from memlab.models.protocols import embedders_in
from memlab.pipeline import Pipeline
from memlab.runtime.clock import Clock, has_offset
from memlab.search.hits import of_kinds
from memlab.search.late_interaction import WeightedLate
from memlab.slots import LANES, PER_SESSION, SLOTS
from memlab.stage import EmptyStage
from memlab.store import Store
from memlab.tables import OPTIONAL, SCHEMAS, Tables, as_of, empty, merge_texts


def session_of_messages(messages: Iterable[Mapping[str, Any]], said_on: datetime | date | str | None = None,
                        name: str | None = None, **fields: Any) -> Session:
    """Return the session of a list of messages; ``said_on`` is the first date that a message states, unless given.

    fields: those of a Session, such as user="ann".

    Instructions (system, developer) and results of tools are left out; pictures, files and calls of tools are named.
    Raises MemlabError for an entry that is no message, and if nobody says anything.

    >>> session = session_of_messages([{"role": "system", "content": "Be brief."},
    ...                                {"role": "user", "content": [{"type": "text", "text": "I adopted a cat."}]}])
    >>> session.turns
    (Turn(role='user', text='I adopted a cat.', speaker=None),)
    """
    check_fields(fields)
    turns, dates = [], []
    if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
        raise MemlabError(f"expected a list of messages, got {type(messages).__name__}", where="session",
                          fix='write [{"role": "user", "content": "..."}]')
    for index, value in enumerate(messages):
        where = f"message {index}"
        if not isinstance(value, Mapping):
            raise MemlabError(f"expected an object with role and content, got {type(value).__name__}", where=where,
                              fix='write {"role": "user", "content": "..."}')
        if message := read_message(value, Tally(), where):
            turns.append(Turn(message.role, message.text, message.speaker))
            dates += [message.said_on] if message.said_on else []
    if not turns:
        raise MemlabError("there is no message of the user or the assistant with words", where="session")
    return Session(said_on if said_on is not None else dates[0] if dates else None, turns, name, **fields)


_BY_LANE = ("weights", "floors", "factors")
"""Fields of a score that map names of lanes to numbers."""


def adapt_to_data(pipeline: Pipeline, tables: Tables) -> Pipeline:
    """Return the pipeline without searches and weights for kinds of which the one question can see no memory."""
    day = pl.lit(tables["questions"]["asked_on"][0], pl.Datetime("us"))
    kinds = set(tables["memories"].filter(as_of(asked=day))["kind"].unique())
    if not kinds:
        return pipeline
    changed: dict[str, Any] = {}
    for slot in SLOTS:
        stage = getattr(pipeline, slot.name)
        searched = getattr(stage, "kinds", None) or ()
        present = tuple(kind for kind in searched if kind in kinds)
        if slot.name in LANES and present != tuple(searched):
            changed[slot.name] = dataclasses.replace(stage, kinds=present) if present else EmptyStage(writes=slot.empty)
    empty = tuple(slot for slot, stage in changed.items() if isinstance(stage, EmptyStage))
    score: Any = pipeline.score
    numbers = {field: getattr(score, field) for field in _BY_LANE if hasattr(score, field)}
    fitting = {field: {name: value for name, value in by_lane.items() if _fits(name, kinds, empty)}
               for field, by_lane in numbers.items()}
    if fitting != numbers:
        changed["score"] = dataclasses.replace(score, **fitting)
    return pipeline.replace(**changed) if changed else pipeline


def _fits(name: str, kinds: set[str], empty: tuple[str, ...]) -> bool:
    """Return whether there can be a lane of this name: late_window and late_session are lanes of the slot late."""
    lane, _, kind = name.partition(":")
    return (not kind or kind in kinds) and not any(lane == slot or lane.startswith(f"{slot}_") for slot in empty)


ENCODING = tuple(slot.name for slot in SLOTS if slot.scope != "session" and slot.phase in ("write", "search"))
"""Slots that need the vectors of keys, if their stage has an embedder."""

PLACED = ("sessions", "turns", "memories", "entities", "links")
"""Tables whose rows belong to a session."""


def write(entries: Iterable[Entry], pipeline: Pipeline, store: Store, clock: Clock) -> Tables:
    """Return the tables of some sessions under their numbers, after the stages that look at one session at a time."""
    build = Builder(clock)
    for entry in entries:
        if entry.session is None:
            continue
        build.session(corpus=0, session=entry.id, said_on=entry.session.said_on, name="")
        for number, turn in zip(entry.numbers, entry.session.turns):
            build.turn(corpus=0, session=entry.id, turn=number, role=turn.role, speaker=turn.speaker, text=turn.text,
                       name="")
    tables = build.tables().only(("texts", "sessions", "turns")).updated({name: empty(name) for name in OPTIONAL})
    for slot in PER_SESSION:
        stage = getattr(pipeline, slot)
        tables = tables.updated(stage.run(tables.only(stage.reads), store))
    return tables


def encode(tables: Tables, pipeline: Pipeline, store: Store) -> None:
    """Compute the vectors of the keys that searches will need."""
    for slot in ENCODING:
        stage = getattr(pipeline, slot)
        for embedder in embedders_in(stage):
            memories = of_kinds(tables["memories"], getattr(stage, "kinds", None))
            keys = tables["texts"].join(memories, left_on="text_id", right_on="key_id", how="semi")
            store.vectors(embedder, keys, "document")
        if isinstance(stage, WeightedLate):
            stage.encode(tables, store)


def concat(parts: Sequence[Tables]) -> Tables:
    """Concatenate parts with different sessions."""
    if len(parts) == 1:
        return parts[0]
    # Polars gives the strings of every small table a buffer of 8 KB, and a concatenated table keeps all of them. The
    # strings are copied (by adding ""), or a session would take ten times the memory of its words.
    merged = {name: pl.concat([part[name] for part in parts], rechunk=True).with_columns(
        pl.col(pl.String) + pl.lit("")) for name in ("texts", *PLACED)}
    merged["texts"] = merge_texts(merged["texts"])
    return Tables(**merged)


def without(tables: Tables, sessions: Iterable[int]) -> Tables:
    """Leave out some sessions, and the texts that no other session has."""
    left = {name: tables[name].filter(~pl.col("session").is_in(list(sessions))) for name in PLACED}
    used = pl.concat([left["turns"]["text_id"], *left["memories"].select("key_id", "value_id")]).alias("text_id")
    return Tables(texts=tables["texts"].join(used.unique().to_frame(), on="text_id", how="semi"), **left)


def chronological(tables: Tables, times: Mapping[int, datetime]) -> tuple[Tables, pl.DataFrame]:
    """Number sessions in the order of time; return the tables and (session, position), the old and the new number.

    Sessions without a date come first; those of one moment are in the order in which they were added. ``times`` are
    those of the sessions; with UTC offsets they decide within a day, since the wall clock may show an hour twice.
    Memories are numbered by kind, session and their order within it.
    """
    moments = pl.DataFrame([(number, moment) for number, moment in times.items() if has_offset(moment)], orient="row",
                           schema={"session": pl.Int32, "moment": pl.Datetime("us", "UTC")})
    places = tables["sessions"].join(moments, on="session", how="left").sort(
        pl.col("said_on").dt.date(), "moment", "said_on", "session", nulls_last=False).select(
        "session", pl.int_range(pl.len(), dtype=pl.Int32).alias("position"))
    return arrange(tables, places), places


def arrange(tables: Tables, places: pl.DataFrame) -> Tables:
    """Return the tables of some sessions, renumbered by (session, position)."""
    placed = {name: _renumber(tables[name], places).select(list(SCHEMAS[name])) for name in PLACED}
    kinds = placed["memories"].select(pl.col("kind").unique(maintain_order=True)).with_row_index("block")
    placed["memories"] = (placed["memories"].join(kinds, on="kind", how="left").sort("block", "session", "memory")
                          .with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("memory"))
                          .select(list(SCHEMAS["memories"])))
    placed["turns"] = placed["turns"].sort("session", "turn")
    return Tables(texts=tables["texts"], edges=empty("edges"), **placed)


def _renumber(table: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    return (table.join(places, on="session", how="left", maintain_order="left")
            .with_columns(pl.col("position").alias("session")).drop("position")
            .sort("session", maintain_order=True))


LISTED: dict[str, Any] = {"session": pl.Int32, "name": pl.String, "said_on": pl.Datetime("us"), "turns": pl.Int32,
                          **dict.fromkeys((*FIELDS, "metadata"), pl.String), "deprecated": pl.Int32, "newer": pl.Int32}
"""Columns of a list of sessions."""

PARTS = 32
"""Number of parts that are concatenated at once, and of the results in turn: a table per session would fill memory."""


class WorkingSet:
    """All sessions that are not forgotten, as tables; the cost of an addition depends on its own size alone.

    names: the number of every named session, of its latest version. turns: the numbers of every session's turns. next:
    the number of the next session; numbers are never used again. ended: the entries of which something is no longer
    valid, by number. zone: time zone of the days, as ``Clock`` takes it.
    """

    def __init__(self, entries: Sequence[Entry], pipeline: Pipeline, store: Store, zone: tzinfo | None = None) -> None:
        self._pipeline, self._store, self._zone = pipeline, store, zone
        self._times: dict[int, datetime] = {}  # of sessions that have more than a date; all of one kind
        self._fields: dict[int, dict[str, Any]] = {}  # with name and metadata, of sessions that have any
        self._places: dict[int, dict[int, tuple[int | None, int | None]]] = {}  # of documents: (offset, page) by turn
        self.names: dict[str, int] = {}
        self.turns: dict[int, set[int]] = {}
        self.ended: dict[int, Entry] = {}
        self._said: dict[bytes, list[int]] = {}  # valid sessions by what they say, and for whom
        self.next = 0
        # under their own numbers: all sessions of the last question; later ones in parts of 1, PARTS, PARTS^2 ...
        self._base = write(entries, pipeline, store, self.clock())
        self._parts: list[list[Tables]] = []
        self._chronological: tuple[Tables, pl.DataFrame] | None = None
        self._values = FieldValues(())  # of the sessions in the order of time
        for entry in entries:
            self._enter(entry)

    def write(self, entries: Sequence[Entry]) -> Tables:
        """Return the tables of sessions and encode their keys at once, without adding them."""
        part = write(entries, self._pipeline, self._store, self.clock())
        encode(part, self._pipeline, self._store)
        return part

    def add(self, entries: Sequence[Entry], part: Tables) -> None:
        """Add new sessions with the tables that ``write`` returned."""
        self._chronological = None
        for entry in entries:
            self._enter(entry)
        for level in range(len(self._parts) + 1):
            if level == len(self._parts):
                self._parts.append([])
            self._parts[level].append(part)
            if len(self._parts[level]) < PARTS:
                return
            part, self._parts[level] = concat(self._parts[level]), []

    def forget(self, left: Mapping[int, Entry]) -> None:
        """Replace some sessions by their remaining turns; if this raises, nothing has changed."""
        self._base, self._parts, self._chronological = self.shortened(left, self._store), [], None
        self.names = {name: number for name, number in self.names.items() if number not in left}
        self._said = {said: others for said, numbers in self._said.items()
                      if (others := [number for number in numbers if number not in left])}
        for entry in left.values():
            del self.turns[entry.id]
            for known in (self._times, self._fields, self._places, self.ended):
                known.pop(entry.id, None)
            self._enter(entry)

    def shortened(self, left: Mapping[int, Entry], store: Store) -> Tables:
        """Return the tables of all sessions, some of them replaced by their remaining turns, under their numbers."""
        after = without(self._all(), left)
        written = [entry for entry in left.values() if entry.session is not None]
        return concat([after, write(written, self._pipeline, store, self.clock())]) if written else after

    def mark(self, entry: Entry) -> None:
        """Take over what has changed beside a session: what of it is valid, and its next version."""
        self.ended.pop(entry.id, None)
        assert entry.session is not None
        said, name = said_digest(entry.session), entry.session.name
        if entry.id in (saying := self._said.get(said, [])):
            self._said[said] = [number for number in saying if number != entry.id]
        if name is not None and self.names.get(name) == entry.id:
            del self.names[name]  # unless it is still the latest version
        self._enter(entry)

    def replaced(self) -> set[int]:
        """Return the numbers of the sessions that have a newer version."""
        return {number for number, entry in self.ended.items() if entry.newer is not None}

    def earlier(self, number: int) -> list[int]:
        """Return the numbers of the earlier versions of a session, the latest first."""
        before = {entry.newer: old for old, entry in self.ended.items() if entry.newer is not None}
        versions = []
        while (number := before.get(number, -1)) >= 0:
            versions.append(number)
        return versions

    def text_ids(self) -> pl.Series:
        """Return the ids of the texts of all sessions."""
        return self._all()["texts"]["text_id"]

    def clock(self) -> Clock:
        """Return a clock that refuses times of another kind than those of the sessions."""
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
            self._base, self._parts = self._all(), []
            self._chronological = chronological(self._base, self._times)
            self._chronological[0].digest(PLACED)  # cached with the tables, for all questions
            self._values = FieldValues([self._fields.get(n, {}) for n in self._chronological[1]["session"]])
        return self._chronological

    def number(self, session: int | str) -> int:
        """Return a session's number, given that or its name; raise MemlabError if there is no such session."""
        if isinstance(session, bool) or not isinstance(session, str | SupportsIndex):
            raise MemlabError(f"expected a number or a name, got {type(session).__name__}", where="session")
        number = self.names.get(session) if isinstance(session, str) else session.__index__()
        if number is None or number not in self.turns:
            raise MemlabError(f"there is no session {session!r}", where="session",
                              fix=did_you_mean(session, self.names) if isinstance(session, str) and self.names else "")
        return number

    def saying(self, session: Session) -> int | None:
        """Return the first session that says the same for the same user, agent, room, source and kind, if any."""
        return next(iter(self._said.get(said_digest(session), ())), None)

    def name_at(self, position: int) -> str | None:
        """Return the name of the session at a position in the order of time, if it has one."""
        _, places = self.tables()
        name: str | None = self._fields.get(places["session"][position], {}).get("name")
        return name

    def matching(self, where: Where) -> pl.DataFrame:
        """Return (session, position, turn), the turns that fit in the order of time; position is the session's there.

        Unless the filter has a role, a session without turns has a row too, with a turn of null.
        """
        tables, places = self.tables()
        sessions = tables["sessions"].select(pl.col("session").alias("position"), "said_on").filter(
            pl.Series(self._values.fit(where)), where.within()).join(places, on="position", maintain_order="left")
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
        return concat([self._base, *(part for level in reversed(self._parts) for part in level)])

    def _enter(self, entry: Entry) -> None:
        self.next = max(self.next, entry.id + 1)
        if entry.session is not None:
            self.turns[entry.id] = set(entry.numbers)
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
