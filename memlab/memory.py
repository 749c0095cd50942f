"""Live memory of one user: sessions are added, and questions are searched and answered by an experiment's pipeline.

::

    with Memory("ann", Pipeline()) as memory:
        memory.add(Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")]))
        memory.add([{"role": "user", "content": "Tom likes fish."}], said_on="2023-05-21")  # as OpenAI's API takes them
        print(memory.search("Which pet do I have?", now="2023-06-01")["words"][0])

An addition is on the disk when ``add`` returns. The stages that look at one session at a time (chunk, extract, anchor,
context) run on the new session alone, and its keys are encoded. Stages that look across sessions (relate, prune) run at
the first question after an addition. A question is a run of the pipeline over all sessions in the order of time.

One process at a time can use a memory. Its methods may be called from several threads: questions (``search``,
``answer``, ``look``, ``history``) run side by side, with turns at the models that make vectors and scores; what changes
the memory runs alone, and so do questions with a store that is shared with experiments. Do not use the pipeline, store
and models of a memory elsewhere at the same time, unless their documentation allows it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, SupportsIndex, TypeVar

import polars as pl

from memlab.errors import MemlabError
from memlab.live import results
from memlab.live.database import Database
from memlab.live.folder import sessions_of_folder
from memlab.live.found import Found
from memlab.live.pruning import Accesses, AccessProtected, frequently_accessed, sessions_to_prune
from memlab.live.results import SearchResult
from memlab.live.sessions import Entry, Session, SessionRows, Turn, same_content
from memlab.live.store import FilteredStore, LiveStore, QuestionStore, forget_codes
from memlab.live.where import Where, narrow
from memlab.live.working_set import WorkingSet, adapt_to_data, session_of_messages
from memlab.pipeline import Pipeline
from memlab.runtime.clock import time_zone
from memlab.runtime.files import SharedLock
from memlab.runtime.machine import release_freed_memory
from memlab.runtime.paths import expand
from memlab.slots import PER_SESSION
from memlab.stage import EmptyStage, Stage
from memlab.store import Store
from memlab.tables import Tables, add_texts, frame
from memlab.text.display import html_table, is_number, paragraphs, plural, replace_surrogates

__all__ = ["Answer", "Memory", "Session", "Turn"]

SHOWN = 20
"""Sessions that a notebook shows: the latest."""

When = datetime | date | str | None
Filter = Mapping[str, Any]
"""A filter as ``Memory.search`` describes it."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Answer:
    """A reader's answer, and the results that it read."""

    text: str
    results: pl.DataFrame


def _alone(method: Callable[Concatenate[Memory, _P], _R]) -> Callable[Concatenate[Memory, _P], _R]:
    """Run a method alone, with the memory loaded."""
    @wraps(method)
    def locked(self: Memory, *args: _P.args, **options: _P.kwargs) -> _R:
        with self._lock.alone():
            self._load()
            return method(self, *args, **options)
    return locked


def _side_by_side(method: Callable[Concatenate[Memory, _P], _R]) -> Callable[Concatenate[Memory, _P], _R]:
    """Run a method beside others of its kind, with the memory loaded and its sessions in the order of time."""
    @wraps(method)
    def locked(self: Memory, *args: _P.args, **options: _P.kwargs) -> _R:
        if self._shared_store is not None:
            with self._lock.alone():
                self._prepare()
                return method(self, *args, **options)
        with self._lock.shared(self._is_prepared, self._prepare):
            return method(self, *args, **options)
    return locked


def _folder(place: str | Path, where: str) -> Path:
    """Return the path of a folder, with ``~`` replaced; raise MemlabError for what is none."""
    if not isinstance(place, str | os.PathLike) or isinstance(os.fspath(place), bytes):
        raise MemlabError(f"{place!r:.60} is no folder", where=where, fix="give its path as text or as a Path")
    return expand(place)


class Memory:
    """A folder of sessions, and a pipeline that searches them; loaded on first use.

    Args:
        folder: Folder of the memory, made on first use.
        pipeline: Stages that write, search and read; may differ from use to use. Judges are left out.
        store: Store of vectors and replies; None is the memory's own, in its folder. A store that is shared with
            experiments works too, but every addition makes it slower.
        often: Memories that were returned more than so many times are never pruned. (ElizaOS gives no number; this is
            ours.)
        timezone: Name of the time zone whose days count for times with a UTC offset, such as Europe/Rome; None is UTC,
            and, for the present moment beside times without an offset, the zone of this machine. A memory and its
            questions have times of one kind.

    Raises MemlabError for a pipeline that reads gold, and, on use, for a folder that is locked by another process or
    cannot be read or written.
    """

    def __init__(self, folder: str | Path, pipeline: Pipeline | None = None, store: Store | None = None,
                 *, often: int = 5, timezone: str | None = None) -> None:
        if pipeline is not None and not isinstance(pipeline, Pipeline):
            raise MemlabError(f"expected a Pipeline, given {type(pipeline).__name__}", where="Memory, pipeline",
                              fix='preset("system=best") returns one (from memlab import preset)')
        if store is not None and not isinstance(store, Store):
            raise MemlabError(f"expected a Store, given {type(store).__name__}", where="Memory, store",
                              fix="give memlab.Store(FOLDER), or leave it out")
        if isinstance(often, bool) or not isinstance(often, int) or often < 0:
            raise MemlabError(f"{often!r:.40} is no number of times", where="Memory, often", fix="give 0 or more")
        self.folder = _folder(folder, "Memory, folder")
        self.pipeline = results.without_judges(pipeline or Pipeline())
        self._question_pipeline = self.pipeline.without(*PER_SESSION)
        self._ranking_pipeline = results.ranking_alone(self._question_pipeline)
        self.often = often
        self._zone = None if timezone is None else time_zone(timezone, "Memory, timezone")
        self._shared_store = store
        self._database = Database(self.folder)
        self._rows = SessionRows(self._database)
        self._lock = SharedLock()
        self._turns = threading.RLock()  # of questions, at vectors and models
        self._process: int | None = None  # the process that has loaded the memory
        self._first_question = False  # since it was loaded or has changed: it reads vectors and makes indexes
        self._store: Store
        self._sessions: WorkingSet
        self._accesses: Accesses

    @classmethod
    def from_folder(cls, chats: str | Path, folder: str | Path, pipeline: Pipeline | None = None,
                    store: Store | None = None, *, often: int = 5, timezone: str | None = None) -> Memory:
        """Return the memory in ``folder`` with the sessions of ``chats``, a folder that ``memlab import`` wrote.

        They keep their names. Those that are there already are not added again, so that a folder may be read again
        after it has grown.
        """
        sessions = sessions_of_folder(_folder(chats, "from_folder, chats"), timezone)
        memory = cls(folder, pipeline, store, often=often, timezone=timezone)
        try:
            memory.add_many(sessions)
        except BaseException:
            memory.close()
            raise
        return memory

    @_alone
    def add(self, session: Session | Iterable[Mapping[str, Any]], said_on: When = None, name: str | None = None,
            **fields: Any) -> int:
        """Save a session and return its number; if this raises, nothing was added.

        ``session`` may be a list of messages as OpenAI's API takes them, ``[{"role": "user", "content": "..."}]``;
        ``said_on``, ``name`` and the fields of a Session (``user="ann"``) belong to such a list. A memory refuses a
        time without a UTC offset if it holds times with one, and the other way round; a date without a time goes with
        both. A session whose name is there already is not added again: its number is returned.
        """
        if not isinstance(session, Session):
            session = session_of_messages(session, said_on, name, **fields)
        elif said_on is not None or name is not None or fields:
            raise MemlabError("a Session has its own date, name and fields", where="add",
                              fix=f"give {', '.join(['said_on', 'name', *fields])} to Session")
        return self._add([session])[0]

    @_alone
    def add_many(self, sessions: Iterable[Session]) -> Sequence[int]:
        """Save sessions, all or none of them, and return their numbers; a kill leaves all or none too.

        They are encoded together, which is much faster than one by one. Names count as in ``add``, also within
        ``sessions``.
        """
        if isinstance(sessions, Session | str | Mapping) or not isinstance(sessions, Iterable):
            raise MemlabError(f"expected a list of sessions, got {type(sessions).__name__}", where="add_many",
                              fix="write [Session(...), Session(...)]")
        given = [*sessions]
        for place, session in enumerate(given):
            if not isinstance(session, Session):
                raise MemlabError(f"expected a Session, got {type(session).__name__}", where=f"session {place}",
                                  fix="Session(said_on, turns, name) makes one; add takes a list of messages")
        return self._add(given)

    @_side_by_side
    def search(self, question: str, now: When = None, k: int | None = None, *,
               where: Filter | None = None, threshold: float | None = None) -> Found:
        """Return what the pipeline selects for a question, or its first ``k`` ranks.

        Nothing said on a later day than ``now`` is found; None is the present moment. ``where`` limits what is searched
        to the sessions and turns that fit, as if there were no others: it maps ``name``, ``user``, ``agent``, ``room``,
        ``source``, ``kind``, ``role`` or ``metadata.KEY`` to a value or a list of them (None for what has none),
        ``after`` to the first day, and ``before`` to the day behind the last. ``threshold`` is the lowest score that is
        returned; scores are those of the pipeline's score or reranker.

        The results are a frame that prints as text; its ``context()`` is the text for a prompt. Columns: rank, score,
        selected, said_on (by the clock of the memory's time zone), session (the number that ``add`` returned), turns,
        text (as a reader is shown it, below its date), role (of all turns, or null), words (without date, and of a turn
        without its speaker), and one column per signal.
        """
        if not (threshold is None or is_number(threshold)):
            raise MemlabError(f"{threshold!r:.40} is no score", where="threshold", fix="give a number, or None")
        tables = self._run(self._ranking_pipeline, question, now, k, where)
        found = self._results(tables, k)
        return Found(self._count(tables, found if threshold is None else found.filter(pl.col("score") >= threshold)))

    @_side_by_side
    def answer(self, question: str, now: When = None, *, where: Filter | None = None) -> Answer:
        """Return the reader's answer; raise MemlabError for a pipeline without a reader."""
        if isinstance(self.pipeline.answer, EmptyStage):
            raise MemlabError("this pipeline has no reader", where="answer",
                              fix="give it one: Pipeline(answer=Reader(chat=..., prompt=...)), or read/answer=reader")
        tables = self._run(self._question_pipeline, question, now, None, where)
        results = self._count(tables, self._results(tables, None))
        return Answer(SearchResult.of(tables, results).answer or "", results)

    @_side_by_side
    def look(self, question: str, now: When = None, k: int | None = None, *,
             where: Filter | None = None) -> SearchResult:
        """Return all results of a question: those of ``search``, the context, and the answer if there is a reader."""
        tables = self._run(self._question_pipeline, question, now, k, where)
        results = self._results(tables, k)
        self._count(tables, results.filter("selected"))
        return SearchResult.of(tables, results, {number: name for name, number in self._sessions.names.items()})

    @_side_by_side
    def history(self, topic: str, now: When = None, k: int | None = None, *,
                where: Filter | None = None) -> pl.DataFrame:
        """Return what was said about a topic in the order of time, and when it was valid: valid_from, valid_to.

        The topic is searched for like a question; ``k`` as in ``search``. ``valid_to`` is set by pipelines that relate
        memories (write/relate). Columns: said_on, happened_on, valid_from, valid_to, session, turns, text, score.
        """
        tables = self._run(self._ranking_pipeline, topic, now, k, where)
        return self._restore_numbers(results.history(tables, results.results(tables, self.pipeline, k)))

    @_alone
    def forget(self, session: int | str | None = None, turns: Iterable[int] | None = None, *,
               where: Filter | None = None) -> None:
        """Forget a session, by number or name, or some of its turns: texts and vectors leave the disk too.

        A result is forgotten by its ``session`` and ``turns``. ``where``, in place of these, forgets all sessions that
        fit (as in ``search``), or, with a role, their turns of that role. What a chat model has written about it stays
        among the replies of the memory's store. Numbers are never used again.
        """
        if where is not None:
            self._forget_where(where, alone=session is None and turns is None)
            return
        if session is None:
            raise MemlabError("nothing is named", where="forget", fix="give a session, or where=...")
        number = self._sessions.number(session)
        turns_of_session = self._sessions.turns[number]
        forgotten: list[Any] | None = None if turns is None else list(turns) if isinstance(turns, Iterable) else []
        if forgotten is not None and not (forgotten and all(
                not isinstance(turn, bool) and isinstance(turn, Integral) and turn in turns_of_session
                for turn in forgotten)):
            raise MemlabError(f"session {number} has no turns {forgotten or turns!r:.80}", where="turns",
                              fix=f"give a list with some of {sorted(turns_of_session)!r:.200}")
        self._forget({number: None if forgotten is None else set(forgotten)})

    @_alone
    def prune(self, now: When = None) -> pl.DataFrame:
        """Forget and return what the pipeline's pruning (write/prune) leaves out on the day of ``now``.

        Searches leave it out anyway; this removes it from the disk. Memories returned more than ``often`` times stay.
        A turn is forgotten when no memory contains it any more, a session when none of its memories is left. Columns:
        session, turns (null for the whole session).
        """
        self._prepare()
        tables = self._tables("", now)
        pruned = sessions_to_prune(tables, self.pipeline.relate, self._pruning(tables), self._question_store())
        rows = self._restore_numbers(pl.DataFrame(
            [(session, turns and sorted(turns)) for session, turns in pruned.items()], orient="row",
            schema={"session": pl.Int32, "turns": pl.List(pl.Int32)}))
        if rows.height:
            self._forget({s: None if turns is None else set(turns) for s, turns in rows.iter_rows()})
        return rows

    def backup(self, folder: str | Path) -> None:
        """Copy the memory to a new or empty folder, whole; questions are answered meanwhile, and additions wait.

        The copy holds the sessions, their vectors and the replies of chat models; search indexes are made again.
        """
        place = _folder(folder, "backup")
        with self._lock.shared(self._is_loaded, self._load):
            self._database.backup(place)

    @_alone
    def get(self, session: int | str) -> Session:
        """Return a session by its number or name, without its forgotten turns."""
        (entry,) = self._rows.find({self._sessions.number(session)})
        assert entry.session is not None
        return entry.session

    @_alone
    def list(self, start: int = 0, count: int | None = None, where: Filter | None = None) -> pl.DataFrame:
        """Return one row per session, or per session that fits (``where`` as in ``search``), in the order of time.

        Columns: session (its number), name, said_on, turns (how many), user, agent, room, source, kind, and metadata as
        JSON. ``start`` leaves out so many of the first, ``count`` is how many follow, or None for all.
        """
        for place, value in (("start", start), ("count", 0 if count is None else count)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise MemlabError(f"{value!r:.40} is no number of sessions", where=place, fix="give 0 or more")
        self._prepare()
        rows = self._sessions.sessions()
        if where:
            fitting = self._sessions.matching(self._where(where))
            rows = rows.filter(pl.col("session").is_in(fitting["session"].implode()))
        return rows.slice(min(start, rows.height), count if count is None else min(count, rows.height))

    def sessions(self) -> pl.DataFrame:
        """Return what ``list`` returns of all sessions."""
        return self.list()

    @_alone
    def count(self, where: Filter | None = None) -> int:
        """Return the number of sessions, or of those that fit (``where`` as in ``search``)."""
        if not where:
            return len(self._sessions.turns)
        self._prepare()
        return self._sessions.matching(self._where(where))["session"].n_unique()

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        """Describe the memory; one that is not in use is not loaded for it."""
        if self._process != os.getpid():
            return f"<Memory in {self.folder}, not loaded>"
        return f"<Memory in {self.folder}, {plural(len(self), 'session')}>"

    def _repr_html_(self) -> str:
        if self._process != os.getpid():
            return paragraphs([repr(self)])
        rows = self.sessions()
        rows = rows.select(*rows.columns[:4], *(name for name in rows.columns[4:] if rows[name].count()))
        return html_table(rows.columns, rows.tail(SHOWN).iter_rows(), f"{self!r:.300}, the last {SHOWN} of them"
                          if rows.height > SHOWN else repr(self))

    def close(self) -> None:
        """Release the folder for other processes; the next use loads the memory again."""
        with self._lock.alone():
            if self._process == os.getpid() and isinstance(self._store, LiveStore):
                self._store.close()
            self._database.close()
            self._process = None

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _load(self) -> None:
        if self._is_loaded():
            return
        if self._process is not None:
            raise MemlabError("this memory was loaded by the process that this one was forked from",
                              where=str(self.folder), fix="make the Memory in the process that uses it")
        self._database.open()
        try:
            self._store = self._shared_store or LiveStore(self._database)
            self._sessions = WorkingSet(self._rows.load(), self.pipeline, self._store, self._zone)
            self._sessions.next = self._rows.next()
            self._accesses = Accesses(self._database)
            if not (self._database.read_only or self._database.is_cleared()):
                self._clear()
        except BaseException:
            self._database.close()
            raise
        self._process = os.getpid()

    def _is_loaded(self) -> bool:
        return self._process == os.getpid()

    def _is_prepared(self) -> bool:
        return self._is_loaded() and not self._sessions.has_changed()

    def _prepare(self) -> None:
        """Load the memory, and put its sessions in the order of time."""
        if not self._is_prepared():
            self._first_question = True
        self._load()
        if isinstance(self._store, LiveStore):
            self._store.forget_questions()
            if self._sessions.has_changed():
                self._store.forget_indexes()
        self._sessions.tables()

    def _where(self, where: Filter) -> Where:
        return Where.read(where, self._sessions.clock())

    def _question_store(self, filtered: bool = False) -> Store:
        if not isinstance(self._store, LiveStore):
            return self._store
        return (FilteredStore if filtered else QuestionStore)(self._store, self._turns)

    def _add(self, sessions: Sequence[Session]) -> Sequence[int]:
        """Save the sessions whose names are not there, all or none; return the numbers of all."""
        new: dict[str, Entry] = {}
        entries: dict[int, Entry] = {}
        numbers = []
        for session in sessions:
            name = session.name
            if name is not None and (name in new or name in self._sessions.names):
                entry = new[name] if name in new else self._rows.find({self._sessions.names[name]})[0]
                if entry.session is None or not same_content(entry.session, session):
                    raise MemlabError(f"there is a session '{name}' with other words or fields", where="session, name",
                                      fix="forget it first, or give this one another name")
            else:
                entry = Entry.new(self._sessions.next + len(entries), session)
                entries[entry.id] = entry
                if name is not None:
                    new[name] = entry
            numbers.append(entry.id)
        if entries:
            part = self._sessions.write([*entries.values()])
            self._rows.append(*entries.values())
            self._sessions.add([*entries.values()], part)
        return numbers

    def _run(self, pipeline: Pipeline, question: str, now: When, k: int | None, where: Filter | None) -> Tables:
        if not isinstance(question, str):
            raise MemlabError(f"expected text, got {type(question).__name__}", where="question")
        if k is not None and (isinstance(k, bool) or not isinstance(k, SupportsIndex) or int(k) < 1):
            raise MemlabError(f"{k!r:.40} is no number of results", where="k", fix="give 1 or more, or None")
        if not question.strip():
            raise MemlabError("the question is blank", where="question")
        tables = self._tables(question, now)
        if where:
            wanted = self._where(where)
            tables = narrow(tables, self._sessions.matching(wanted)["position"].unique(), wanted)
        pipeline = pipeline.replace(prune=self._pruning(tables))
        if isinstance(self._store, LiveStore):
            self._store.check_files()
        found = adapt_to_data(pipeline, tables).run(tables, self._question_store(filtered=bool(where)))
        if self._first_question:
            self._first_question = False
            release_freed_memory()
        return found

    def _tables(self, question: str, now: When) -> Tables:
        """Return the tables of all sessions, and of the one question."""
        tables, _ = self._sessions.tables()
        text_id, texts = add_texts(tables["texts"], [replace_surrogates(question)])
        clock = self._sessions.clock()
        moment = clock.now() if now is None else clock.local(now, "now")
        questions = frame("questions", {"question": [0], "corpus": [0], "text_id": text_id, "asked_on": [moment]})
        return tables.updated({"questions": questions, "texts": texts})

    def _pruning(self, tables: Tables) -> Stage:
        """Return the pipeline's pruning, with frequently returned memories protected."""
        _, places = self._sessions.tables()
        if isinstance(self.pipeline.prune, EmptyStage):
            return self.pipeline.prune
        counts = self._accesses.frame().join(places, on="session").with_columns(pl.col("position").alias("session"))
        protected = frequently_accessed(tables["memories"], counts, self.often)
        return AccessProtected(by=self.pipeline.prune, memories=protected)

    def _results(self, tables: Tables, k: int | None) -> pl.DataFrame:
        return self._restore_numbers(results.results(tables, self.pipeline, k))

    def _restore_numbers(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Replace positions in time by the numbers that ``add`` returned."""
        _, places = self._sessions.tables()
        return rows.with_columns(pl.Series("session", places["session"].gather(rows["session"])))

    def _count(self, tables: Tables, results: pl.DataFrame) -> pl.DataFrame:
        """Count the accesses of the results, and return them."""
        self._accesses.add(results, tables["questions"]["asked_on"][0].date())
        return results

    def _forget_where(self, where: Filter, alone: bool) -> None:
        if not (alone and where):
            raise MemlabError("a filter is given without a condition" if alone else "a session and a filter are given",
                              where="forget, where", fix='give one of them, such as where={"user": "ann"}')
        self._prepare()
        wanted = self._where(where)
        found: dict[int, set[int] | None] = {}
        for session, _, turn in self._sessions.matching(wanted).iter_rows():
            if wanted.roles is None:
                found[session] = None
            else:
                found[session] = (found.get(session) or set()) | {turn}
        if found:
            self._forget(found)

    def _forget(self, forgotten: Mapping[int, set[int] | None]) -> None:
        """Forget sessions, or some of their turns, on the disk and then in memory."""
        left = {entry.id: entry.without(forgotten[entry.id]) for entry in self._rows.find(set(forgotten))}
        try:
            with self._database.transaction():
                self._rows.replace(left)
                self._accesses.forget(forgotten)
                forget_codes(self._database)
                self._sessions.forget(left)
            self._clear()
        except BaseException:  # the disk is consistent in any case: the next use loads it again and finishes the work
            self.close()
            raise

    def _clear(self) -> None:
        """Erase forgotten sessions from the folder, whatever store is used now."""
        own = self._store if isinstance(self._store, LiveStore) else LiveStore(self._database)
        own.forget_indexes()
        own.keep(self._sessions.text_ids())
        self._database.clear()
