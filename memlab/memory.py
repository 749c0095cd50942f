"""One user's live memory: the pipeline of the experiments as an object that is added to and asked.

::

    with Memory("ann", Pipeline()) as memory:
        memory.add(Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")]))
        print(memory.search("Which pet do I have?", now="2023-06-01")["text"][0])

An addition is on the disk when ``add`` returns, and costs what its session costs: the stages that look at a session
alone (chunk, extract, anchor, context) run on it, and its keys are encoded. Stages that look across sessions (relate,
prune) run when something is asked, and again only when something was added. Asked, it is the pipeline's own run over
all sessions in the order of time.

One process at a time holds a memory. Its methods may be called from several threads, and run one after another;
pipeline, store and models must not be used beside them, unless they say that they can be.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import polars as pl

from memlab.errors import MemlabError
from memlab.live import results
from memlab.live.accesses import Accesses
from memlab.live.adapt import adapt_to_data
from memlab.live.log import Log
from memlab.live.pruning import AccessProtected, frequently_accessed, sessions_to_prune
from memlab.live.results import SearchResult
from memlab.live.sessions import Entry, Session, Turn, parse_moment, same_words
from memlab.live.vector_log import LiveStore
from memlab.live.working_set import WorkingSet
from memlab.pipeline import PER_SESSION, Pipeline
from memlab.stage import Nothing, Stage
from memlab.store import Store
from memlab.tables import Tables, add_texts, frame
from memlab.text.unicode import replace_surrogates

__all__ = ["Answer", "Memory", "Session", "Turn"]

When = datetime | date | str | None
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True)
class Answer:
    """A reader's answer, and the results that it was given."""

    text: str
    results: pl.DataFrame


def _alone(method: Callable[Concatenate[Memory, _P], _R]) -> Callable[Concatenate[Memory, _P], _R]:
    """Run one method at a time, with the memory loaded."""
    @wraps(method)
    def locked(self: Memory, *args: _P.args, **more: _P.kwargs) -> _R:
        with self._turnstile:
            self._load()
            return method(self, *args, **more)
    return locked


class Memory:
    """A folder of sessions, and a pipeline to find them by; loaded on first use.

    Args:
        folder: Where the memory lies; made by the first use.
        pipeline: How it is written, searched and read; another one may be chosen another day. Judges are left out.
        store: Where vectors and replies are kept; None is the memory's own, in its folder. One that is shared with
            experiments works too, but grows slower with every addition.
        often: What was returned more than so many times is never pruned. (ElizaOS gives no number; this is ours.)

    Raises MemlabError for a pipeline that looks at gold, and, on use, for a folder that another process holds or that
    cannot be read or written.
    """

    def __init__(self, folder: str | Path, pipeline: Pipeline | None = None, store: Store | None = None,
                 *, often: int = 5) -> None:
        self.folder = Path(folder)
        self.pipeline = results.without_judges(pipeline or Pipeline())
        self._asking = self.pipeline.without(*PER_SESSION)
        self.often = often
        self._given = store
        self._log = Log(self.folder)
        self._turnstile = threading.RLock()
        self._process: int | None = None  # that has loaded it, and holds the lock
        self._store: Store
        self._held: WorkingSet
        self._accesses: Accesses

    @_alone
    def add(self, session: Session) -> int:
        """Add a session and return its number; when this returns it is saved, when it raises nothing was added.

        A session whose name is there already is not added again: its number is returned.
        """
        if session.name is not None and session.name in self._held.names:
            return self._known(session.name, session)
        entry = Entry.new(self._held.next, session)
        part = self._held.write(entry)
        self._log.append(entry)
        self._held.add(entry, part)
        return entry.id

    @_alone
    def search(self, question: str, now: When = None, k: int | None = None) -> pl.DataFrame:
        """Return what the pipeline selects for a question, or its first ``k`` ranks.

        Nothing said on a later day than ``now`` is found; None is the present moment, by the clock of this machine.
        Columns: rank, score, selected, said_on, session (as ``add`` numbered it), turns, text, and one a signal.
        """
        tables = self._ask(question, now)
        return self._seen(tables, self._results(tables, k))

    @_alone
    def answer(self, question: str, now: When = None) -> Answer:
        """Return the reader's answer; raises MemlabError for a pipeline without a reader."""
        if isinstance(self.pipeline.answer, Nothing):
            raise MemlabError("this pipeline has no reader", where="answer",
                              fix="give it one: Pipeline(answer=Reader(chat=..., prompt=...)), or read/answer=reader")
        tables = self._ask(question, now)
        results = self._seen(tables, self._results(tables, None))
        return Answer(SearchResult.of(tables, results).answer or "", results)

    @_alone
    def look(self, question: str, now: When = None, k: int | None = None) -> SearchResult:
        """Return all that a question brings to light: results as of ``search``, context, and the answer if any."""
        tables = self._ask(question, now)
        results = self._results(tables, k)
        self._seen(tables, results.filter("selected"))
        return SearchResult.of(tables, results)

    @_alone
    def history(self, topic: str, now: When = None, k: int | None = None) -> pl.DataFrame:
        """Return what was said of a topic in the order of time, and when it held: valid_from, valid_to.

        The topic is searched for like a question; ``k`` as in ``search``. ``valid_to`` is set by pipelines that relate
        memories (write/relate). Columns: said_on, happened_on, valid_from, valid_to, session, turns, text, score.
        """
        tables = self._ask(topic, now)
        told = results.history(tables, results.results(tables, self.pipeline, k))
        return self._numbered(told)

    @_alone
    def forget(self, session: int | str, turns: Iterable[int] | None = None) -> None:
        """Forget a session, by number or name, or some of its turns: also on the disk, texts and vectors alike.

        A result is forgotten by its ``session`` and ``turns``. What a chat model has written of it stays among the
        replies of the memory's store. Numbers are not given again.
        """
        number = self._held.number(session)
        here = self._held.turns[number]
        gone = None if turns is None else set(turns)
        if gone is not None and (not gone or not gone <= here):
            raise MemlabError(f"session {number} has no turns {sorted(gone - here)}", where="turns",
                              fix=f"give some of {sorted(here)}")
        self._forget({number: gone})

    @_alone
    def prune(self, now: When = None) -> pl.DataFrame:
        """Forget for good what the pipeline's pruning (write/prune) leaves out on the day of ``now``; return it.

        Searches leave it out anyway; this takes it off the disk. What was returned more than ``often`` times stays.
        A turn goes when no memory that names it is left, a session when all of its memories went. Columns: session,
        turns (null for the whole session).
        """
        tables = self._asked_tables("", now)
        gone = sessions_to_prune(tables, self.pipeline.relate, self._spared(tables), self._store)
        rows = pl.DataFrame([(s, turns and sorted(turns)) for s, turns in gone.items()], orient="row",
                            schema={"session": pl.Int32, "turns": pl.List(pl.Int32)})
        rows = self._numbered(rows)
        if rows.height:
            self._forget({s: None if turns is None else set(turns) for s, turns in rows.iter_rows()})
        return rows

    @_alone
    def sessions(self) -> pl.DataFrame:
        """Return one row per session, in the order of time: session (its number), name, said_on, turns (how many)."""
        return self._held.sessions()

    def __len__(self) -> int:
        return self.sessions().height

    def close(self) -> None:
        """Let other processes in; the next use loads the memory again."""
        with self._turnstile:
            self._log.close()
            self._process = None

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _load(self) -> None:
        if self._process == os.getpid():
            return
        if self._process is not None:
            raise MemlabError("this memory was loaded by the process that this one was forked from",
                              where=str(self.folder), fix="make the Memory in the process that uses it")
        entries = self._log.open()
        try:
            self._store = self._given or LiveStore(self.folder / "store")
            self._held = WorkingSet(entries, self.pipeline, self._store)
            self._accesses = Accesses(self.folder)
        except BaseException:
            self._log.close()
            raise
        self._process = os.getpid()

    def _known(self, name: str, session: Session) -> int:
        number = self._held.names[name]
        (entry,) = self._log.find({number})
        if entry.session is None or not same_words(entry.session, session):
            raise MemlabError(f"there is a session '{name}' with other words", where="session, name",
                              fix="forget it first, or give this one another name")
        return number

    def _ask(self, question: str, now: When) -> Tables:
        if not question.strip():
            raise MemlabError("the question is blank", where="question")
        tables = self._asked_tables(question, now)
        if isinstance(self._store, LiveStore):
            self._store.forget_questions()
        return adapt_to_data(self._asking.replace(prune=self._spared(tables)), tables).run(tables, self._store)

    def _asked_tables(self, question: str, now: When) -> Tables:
        if self._held.changed() and isinstance(self._store, LiveStore):
            self._store.forget_indexes()
        tables, _ = self._held.tables()
        text_id, texts = add_texts(tables["texts"], [replace_surrogates(question)])
        day = parse_moment(now, "now") or datetime.now(UTC).astimezone().replace(tzinfo=None)
        asked = frame("questions", {"question": [0], "corpus": [0], "text_id": text_id, "asked_on": [day]})
        return tables.updated({"questions": asked, "texts": texts})

    def _spared(self, tables: Tables) -> Stage:
        """Return the pipeline's pruning without what was often returned."""
        _, places = self._held.tables()
        if isinstance(self.pipeline.prune, Nothing):
            return self.pipeline.prune
        counts = self._accesses.frame().join(places, on="session").with_columns(pl.col("position").alias("session"))
        kept = frequently_accessed(tables["memories"], counts, self.often)
        return AccessProtected(by=self.pipeline.prune, memories=kept)

    def _results(self, tables: Tables, k: int | None) -> pl.DataFrame:
        return self._numbered(results.results(tables, self.pipeline, k))

    def _numbered(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Put the numbers that ``add`` gave in the place of positions in time."""
        _, places = self._held.tables()
        return rows.with_columns(pl.Series("session", places["session"].gather(rows["session"])))

    def _seen(self, tables: Tables, results: pl.DataFrame) -> pl.DataFrame:
        """Count what is returned."""
        self._accesses.add(results, tables["questions"]["asked_on"][0].date())
        return results

    def _forget(self, gone: Mapping[int, set[int] | None]) -> None:
        """Forget sessions, or some of their turns, on the disk and then here."""
        left = {e.id: e.without(gone[e.id]) for e in self._log.find(set(gone))}
        try:
            self._log.replace(left)
            self._accesses.forget(gone)
            texts = self._held.forget(left)
            if isinstance(self._store, LiveStore):
                self._store.forget_indexes()
                self._store.forget_texts(texts)
        except BaseException:  # the disk is right whatever happened: the next use loads it again
            self.close()
            raise
