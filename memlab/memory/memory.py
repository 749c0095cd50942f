"""Live memory of one user: sessions are added, and questions are searched and answered by an experiment's pipeline.

::

    with Memory("ann") as memory:
        memory.add(Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")]))
        memory.add([{"role": "user", "content": "Tom likes fish."}], said_on="2023-05-21")  # as OpenAI's API takes them
        print(memory.search("Which pet do I have?", now="2023-06-01")["text"][0])

An addition is on the disk when ``add`` returns. The stages that look at one session at a time (chunk, extract, anchor,
context) run on the new session only, and its keys are encoded. Stages that look across sessions (relate, prune) run at
the first question after an addition. A question is a run of the pipeline over all sessions in the order of time.

One process at a time can use a memory. Its methods may be called from several threads: questions (the searches,
``answer``, ``look``, ``history``) run side by side, with turns at the models that make vectors and scores; what changes
the memory runs alone. Do not use the pipeline, store
and models of a memory elsewhere at the same time, unless their documentation allows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field, SkipValidation

from memlab.memory.choice import choose
from memlab.memory.database import refuse_inside
from memlab.memory.feedback import results_of
from memlab.memory.found import Found
from memlab.memory.messages import session_of_messages
from memlab.memory.one_search import read_vector
from memlab.memory.opening import LockedContent
from memlab.memory.questions import Filter, Question, Questions, When, day_of
from memlab.memory.results import SearchResult
from memlab.memory.sessions import ALWAYS, Session, Turn
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.stages.query.where import Where
from memlab.support.arguments import Place, check_arguments, check_methods
from memlab.support.clock import time_zone
from memlab.support.errors import MemlabError
from memlab.support.paths import expand
from memlab.support.text.display import plural

__all__ = ["Memory", "Session", "Turn", "search_texts"]

Stages = Annotated[Pipeline, 'preset("system=best") returns one (from memlab import preset)']
Sessions = Annotated[Iterable[Session], "write [Session(...), ...]"]
Messages = Annotated[Iterable[Mapping[str, Any]], 'write [{"role": "user", "content": "..."}]']
SessionKey = Annotated[int | str, "list() returns the numbers and names of all sessions"]
Result = Annotated[Mapping[str, Any] | pl.DataFrame,
                   "give a row of what search returns, found[0], or several, found[:3]"]
Vector = Annotated[Sequence[float] | np.ndarray, SkipValidation]
Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Finite = Annotated[float, Field(allow_inf_nan=False)]


@check_arguments
def search_texts(texts: Iterable[str], question: str, k: Positive = 10, pipeline: Stages | None = None) -> Found:
    """Return the best ``k`` texts for a question, as ``Memory.search`` returns results; nothing is saved.

    The column ``session`` of a result is the place of its text in ``texts``.
    """
    if isinstance(texts, str):
        raise MemlabError("expected a list of texts, got one text", where="search_texts", fix="write [text, text, ...]")
    with TemporaryDirectory() as folder, Memory(folder, pipeline) as memory:
        memory.add_many(Session(None, [("user", text)]) for text in texts)
        return memory.search(question, k=k)


def _has_its_own(where: str, fields: Iterable[str]) -> MemlabError:
    return MemlabError("a Session has its own date, name and fields", where=where,
                       fix=f"give {', '.join(['said_on', 'name', *fields])} to Session")


@check_methods
class Memory:
    """A folder of sessions, and a pipeline that searches them; loaded on first use.

    Args:
        folder: Folder of the memory, made on first use.
        pipeline: Stages that write, search and read; may differ from use to use. Judges are left out. None is ``best``;
            a memory that was made with the former default stays with it (``memlab.memory.default``).
        often: Memories that were returned more than so many times are never pruned. (ElizaOS gives no number; this is
            ours.)
        timezone: Name of the time zone whose days count for times with a UTC offset, such as Europe/Rome; None is UTC,
            and, for the present moment among times without an offset, the zone of this machine. A memory and its
            questions have times of one kind.

    Raises MemlabError for a pipeline that reads gold, and, on use, for a folder that is locked by another process or
    cannot be read or written.
    """

    def __init__(self, folder: Place, pipeline: Stages | None = None, *, often: NotNegative = 5,
                 timezone: str | None = None) -> None:
        self.folder = expand(folder)
        if pipeline is None:
            from memlab.memory.default import pipeline_of  # modules that another pipeline does not need

            pipeline = pipeline_of(self.folder)
        self._questions = Questions(pipeline, often)
        self.pipeline = self._questions.pipeline
        zone = None if timezone is None else time_zone(timezone, "Memory, timezone")
        self._opening = LockedContent(self.folder, self.pipeline, zone)

    @classmethod
    def from_folder(cls, chats: Place, folder: Place, pipeline: Stages | None = None, *,
                    often: NotNegative = 5, timezone: str | None = None) -> Memory:
        """Return the memory in ``folder`` with the sessions of ``chats``, a folder that ``memlab import`` wrote.

        They keep their names, so a folder may be read again after it has grown: what is new of it comes in, and so
        do the new turns of a chat that has gone on. What was forgotten stays out, by the session's name and the numbers
        of its turns; ``add`` takes it in again. A session that was changed here (``update``), or whose earlier turns
        are others now, is named in a warning and left as it is.
        """
        from memlab.memory.json_lines import read_folder  # readers of files, which a question does not need

        entries = read_folder(expand(chats), timezone)
        memory = cls(folder, pipeline, often=often, timezone=timezone)
        try:
            with memory._opening.alone() as content:
                content.read_again(entries)
        except BaseException:
            memory.close()
            raise
        return memory

    def add(self, session: Session | Messages, said_on: When = None, name: str | None = None,
            *, unique: bool = False, **fields: Any) -> int:
        """Save a session and return its number; if this raises, nothing was added.

        ``session`` may be a list of messages as OpenAI's API takes them, ``[{"role": "user", "content": "..."}]``;
        ``said_on``, ``name`` and the fields of a Session (``user="ann"``) belong to such a list. A memory refuses a
        time without a UTC offset if it holds times with one, and the other way round; a date without a time goes with
        both. A session whose name is there already is not added again: its number is returned. With ``unique`` that is
        so as well for a session whose turns another one has, to the letter, for the same user, agent, room, source and
        kind; date, name and metadata do not matter, and sessions of which something was replaced or deprecated
        do not count.
        """
        if not isinstance(session, Session):
            session = session_of_messages(session, said_on, name, **fields)
        elif said_on is not None or name is not None or fields:
            raise _has_its_own("add", fields)
        with self._opening.alone() as content:
            return content.add([session], unique)[0]

    def add_many(self, sessions: Sessions, *, unique: bool = False) -> Sequence[int]:
        """Save sessions, all or none of them, and return their numbers; a kill leaves all or none too.

        They are encoded together, which is much faster than one by one. Names and ``unique`` count as in
        ``add``, also within ``sessions``.
        """
        given = [*sessions]
        for place, session in enumerate(given):
            if not isinstance(session, Session):
                raise MemlabError(f"expected a Session, got {type(session).__name__}", where=f"session {place}",
                                  fix="Session(said_on, turns, name) makes one; add takes a list of messages")
        with self._opening.alone() as content:
            return content.add(given, unique)

    def add_document(self, path: Place | None = None, *, text: str | None = None, said_on: When = None,
                     name: str | None = None, max_mb: Annotated[float, Field(gt=0)] = 20.0, **fields: Any) -> int:
        """Save a file of Markdown, text, PDF, Word or JSON as a session, and return its number.

        Each chunk (a paragraph, a table, an entry, or a page of a PDF without blank lines) is a turn, and results tell
        its place. The session's name and ``source`` are the file's name, its ``kind`` is "document", and its date is
        the one that the file states, unless they or other ``fields`` of a Session are given. ``text`` takes the place
        of a file; it needs a name, whose ending says how it is read (``.md``, ``.json``, else plain text). A file of
        more than ``max_mb`` is refused.
        """
        from memlab.memory.documents import session_of_document

        file = None if path is None else expand(path)
        session = session_of_document(file, text, said_on, name, max_mb=max_mb, **fields)
        with self._opening.alone() as content:
            return content.add([session])[0]

    def import_sessions(self, file: Place) -> Sequence[int]:
        """Add the sessions of a file that ``export`` wrote, all or none; return the numbers of those that are there.

        The sessions.jsonl of ``memlab import`` is such a file. What is there already, was forgotten, or was changed
        counts as in ``from_folder``.
        """
        from memlab.memory.json_lines import read_file

        entries = read_file(expand(file))
        with self._opening.alone() as content:
            return content.read_again(entries)

    def search(self, question: str, now: When = None, k: Positive | None = None, *,
               where: Filter | None = None, threshold: Finite | None = None) -> Found:
        """Return what the pipeline selects for a question, or its first ``k`` ranks.

        Nothing said on a later day than ``now`` is found; None is the present moment. ``where`` limits what is searched
        to the sessions and turns that fit, as if there were no others: it maps ``name``, ``user``, ``agent``, ``room``,
        ``source``, ``kind``, ``role`` or ``metadata.KEY`` to a value or a list of them (None for what has none),
        ``after`` to the first day, and ``before`` to the day behind the last. ``threshold`` is the lowest score that is
        returned; scores come from the pipeline's score or reranker.

        The results are a frame that prints as text; its ``context()`` is the text for a prompt. Columns: rank, score,
        selected, date (by the clock of the memory's time zone), role (of all turns, or null), speaker (a name or role;
        null for a text of several turns, which names them), text, session (the number that ``add`` returned), name (of
        the session), turns, chunk (of a document: index, total, offset, page), and one column per signal.
        """
        return self._search(self._questions.ranking, Question(question, now, k, where, threshold))

    def search_text(self, question: str, now: When = None, k: Positive | None = None, *, where: Filter | None = None,
                    threshold: Finite | None = None) -> Found:
        """Return the best ``k`` results, or 10, by words only: the pipeline's search by words, or BM25.

        ``score`` is that of the search, and ``threshold`` the lowest; all else as in ``search``.
        """
        return self._search(self._questions.words, Question(question, now, k, where, threshold))

    def search_vector(self, vector: Vector, now: When = None, k: Positive | None = None, *,
                      where: Filter | None = None, threshold: Finite | None = None) -> Found:
        """Return the best ``k`` results, or 10, by the cosine of a vector with the stored vectors.

        The vector is of the pipeline's embedder (``search.dense``), for a question or a text; its length does not
        matter. ``score`` is the cosine, and ``threshold`` the lowest; all else as in ``search``. Raises MemlabError for
        a pipeline without vectors, and for a vector of another number of dimensions.
        """
        asked = Question("", now, k, where, threshold, read_vector(vector))
        return self._search(self._questions.by_vector(asked), asked)

    def _search(self, pipeline: Pipeline, asked: Question) -> Found:
        with self._opening.side_by_side() as content:
            return Found(self._questions.search(pipeline, content, asked))

    def answer(self, question: str, now: When = None, *, where: Filter | None = None) -> str:
        """Return the reader's answer, as ``look`` does; raise MemlabError for a pipeline without a reader."""
        if isinstance(self.pipeline.answer, EmptyStage):
            raise MemlabError("this pipeline has no reader", where="answer",
                              fix="give it one: Pipeline(answer=Reader(chat=..., prompt=...)), or read/answer=reader")
        return self.look(question, now, where=where).answer or ""

    def look(self, question: str, now: When = None, k: Positive | None = None, *,
             where: Filter | None = None) -> SearchResult:
        """Return all about a question: what ``search`` returns, the context, and the answer if there is a reader."""
        asked = Question(question, now, k, where)
        with self._opening.side_by_side() as content:
            tables = self._questions.run(self._questions.answering, content, asked)
            results = self._questions.results(content, tables, asked)
            content.accesses.add(results.filter("selected"), day_of(tables))
            return SearchResult.of(tables, results)

    def history(self, topic: str, now: When = None, k: Positive | None = None, *,
                where: Filter | None = None) -> pl.DataFrame:
        """Return what was said about a topic in the order of time, and when it was valid: valid_from, valid_to, valid.

        The topic is searched for like a question, among earlier versions and deprecated turns too; ``k`` as in
        ``search``. ``valid_to`` is the first day without it: that of a newer version, the one that ``deprecate`` was
        given (else that of ``valid_from``), or one set by pipelines that relate memories (write/relate). ``valid`` is
        false from that day on. Columns: said_on, happened_on, valid_from, valid_to, valid, session, turns, text, score.
        """
        asked = Question(topic, now, k, where)
        with self._opening.side_by_side() as content:
            tables = self._questions.run(self._questions.ranking, content, asked, ended=True)
            return self._questions.history(content, tables, asked)

    def update(self, session: SessionKey, new: Session | Messages, said_on: When = None,
               name: str | None = None, *, keep_old: bool = True, **fields: Any) -> int:
        """Save a new version of a session, by number or name, and return its number; a kill leaves both or the old one.

        ``new`` is a Session, which replaces all of the old one but its name if it has none, or messages as ``add``
        takes them, which keep the date, name and fields that are not given. Questions find the new version from its day
        on, or at any time if it has no date, and the old one before that day; the old one stays in ``history``, or is
        forgotten with ``keep_old=False``. The same version again changes nothing.
        """
        made = new if isinstance(new, Session) else session_of_messages(new, said_on, name, **fields)
        if made is new and not (said_on is None and name is None and not fields):
            raise _has_its_own("update", fields)
        with self._opening.alone() as content:
            number = content.sessions.number(session)
            version = made if made is new else made.with_missing(content.get(number), fields.get("metadata") is None)
            return content.update(number, version, keep_old)

    def deprecate(self, session: SessionKey | None = None, turns: Iterable[int] | None = None, since: When = None, *,
                  where: Filter | None = None) -> None:
        """Mark a session, or some of its turns, as no longer valid: questions leave them out, and ``history`` shows it.

        ``since`` is the first day on which they are not valid; None leaves them out of questions of any day. ``where``
        chooses as in ``forget``, but no earlier versions. ``restore`` takes it back.
        """
        with self._opening.alone(prepared=where is not None) as content:
            day = ALWAYS if since is None else content.sessions.clock().local(since, "since").date()
            content.deprecate(choose(content.sessions, session, turns, where, replaced=False), day)

    def restore(self, session: SessionKey | None = None, turns: Iterable[int] | None = None, *,
                where: Filter | None = None) -> None:
        """Mark a session, or some of its turns, as valid again after ``deprecate``."""
        with self._opening.alone(prepared=where is not None) as content:
            content.deprecate(choose(content.sessions, session, turns, where), None)

    def feedback(self, result: Result, useful: bool, now: When = None) -> None:
        """Record whether a result was useful, as of the day of ``now``.

        ``result`` is a row of what ``search`` returns (``found[0]``, or anything with its ``session``
        and ``turns``), or a frame of rows, such as ``found[:3]``, each of which gets a vote. Pipelines with
        ``rank/boost=feedback`` rank by the votes. They are forgotten with the turns.
        """
        with self._opening.alone() as content:
            places = [(number, sorted(of_session))
                      for session, turns in results_of(result)
                      for number, of_session in choose(content.sessions, session, turns).items()]
            content.votes.add(places, useful, content.sessions.moment(now).date())

    def forget(self, session: SessionKey | None = None, turns: Iterable[int] | None = None, *,
               where: Filter | None = None) -> int:
        """Forget a session, by number or name, or some of its turns, and return how many turns went.

        Texts and vectors leave the disk too, and ``from_folder`` and ``import_sessions`` do not bring them back.
        A result is forgotten by its ``session`` and ``turns``. ``where``, in place of these, forgets all sessions that
        fit (as in ``search``), or, with a role, their turns of that role. Earlier versions of a session go with it, and
        with any of its turns. What a chat model has written about it stays among the replies of the memory's store.
        Numbers are never used again.
        """
        with self._opening.alone(prepared=where is not None) as content:
            forgotten = choose(content.sessions, session, turns, where)
            return content.forget(forgotten) if forgotten else 0  # which takes time

    def prune(self, now: When = None) -> pl.DataFrame:
        """Forget and return what the pipeline's pruning (write/prune) leaves out on the day of ``now``.

        Searches leave it out anyway; this removes it from the disk. Memories returned more than ``often`` times stay.
        A turn is forgotten when no memory contains it any more, a session when none of its memories is left. Columns:
        session, turns (null for the whole session).
        """
        with self._opening.alone(prepared=True) as content:
            rows = self._questions.prunable(content, now)
            if rows.height:
                content.forget({s: content.sessions.turns[s] if turns is None else {*turns}
                                for s, turns in rows.iter_rows()})
            return rows

    def backup(self, folder: Place) -> None:
        """Copy the memory to a new or empty folder, whole; questions are answered meanwhile, and additions wait.

        The copy holds the sessions, their vectors and the replies of chat models; search indexes are made again.
        """
        self._opening.backup(expand(folder))

    def export(self, file: Place) -> int:
        """Write all sessions to a new file, one JSON object a line, and return how many there are.

        ``import_sessions`` reads it, and so does ``data=custom``. A session without a name gets one in the file only.
        Earlier versions and deprecated turns that are not valid today are left out. Those that are valid until a later
        day are there without that day; a warning says so.
        """
        from memlab.memory.json_lines import lines_of, write

        place = expand(file)
        refuse_inside(place, self.folder)
        with self._opening.side_by_side() as content:
            return write(lines_of(content.entries(), self.folder, content.sessions.clock()), place)

    def today(self) -> date:
        """Return the day on which a question without ``now`` is asked, by the clock of the memory's time zone."""
        with self._opening.alone() as content:
            return content.sessions.moment(None).date()

    def get(self, session: SessionKey) -> Session:
        """Return a session by its number or name, without its forgotten turns."""
        with self._opening.alone() as content:
            return content.get(content.sessions.number(session))

    def list(self, start: NotNegative = 0, count: NotNegative | None = None, where: Filter | None = None, *,
             versions: bool = False) -> pl.DataFrame:
        """Return one row per session, or per session that fits (``where`` as in ``search``), in the order of time.

        Columns: session (its number), name, said_on, turns (how many), user, agent, room, source, kind, metadata as
        JSON, deprecated (how many of the turns, or null), and newer (the number of the next version, or null).
        ``start`` leaves out so many of the first, ``count`` is how many follow, or None for all. Earlier versions are
        rows too with ``versions=True``.
        """
        with self._opening.alone(prepared=True) as content:
            rows = content.sessions.sessions()
            if wanted := Where.read_any(where, content.sessions.clock()):
                fitting = content.sessions.turns_that_fit(wanted)
                rows = rows.filter(pl.col("session").is_in(fitting["session"].implode()))
            if not versions:
                rows = rows.filter(pl.col("newer").is_null())
        return rows.slice(start, count)

    def count(self, where: Filter | None = None) -> int:
        """Return the number of sessions, or of those that fit (``where`` as in ``search``)."""
        with self._opening.alone(prepared=bool(where)) as content:
            found = set(content.sessions.turns)
            if wanted := Where.read_any(where, content.sessions.clock()):
                found = {*content.sessions.turns_that_fit(wanted)["session"]}
            return len(found - content.sessions.replaced())

    def __len__(self) -> int:
        return self.count()

    def __repr__(self) -> str:
        """Describe the memory; one that is not in use is not loaded for it."""
        if not self._opening.is_open():
            return f"<Memory in {self.folder}, not loaded>"
        return f"<Memory in {self.folder}, {plural(len(self), 'session')}>"

    def close(self) -> None:
        """Release the folder for other processes; the next use loads the memory again."""
        self._opening.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
