"""LongMemEval: five hundred questions, each over its own haystack of a user's chat sessions.

Wu et al., "LongMemEval: Benchmarking Chat Assistants on Long-Term Interactive Memory" (ICLR 2025),
github.com/xiaowu0162/LongMemEval, cleaned release. Read record by record, so that M (2.7 GB) fits as well as S.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

from memlab.data import benchmarks, readers
from memlab.data.benchmarks import Builder
from memlab.data.dataset import GroupBy
from memlab.data.fields import ROLES
from memlab.data.subset import Subset, known_types
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

TYPES = ("single-session-user", "single-session-assistant", "single-session-preference", "multi-session",
         "temporal-reasoning", "knowledge-update")

PAST = re.compile(r"\b(previous(ly)?|before|former(ly)?|initial(ly)?|original(ly)?|used to|first)\b", re.IGNORECASE)
"""Words of a question about the past, whose answer a later session does not make outdated."""

_DAY_NAME = re.compile(r" \(\w+\)")

@stage
class LongMemEval(Subset):
    """A record is a corpus with one question; the sessions of its haystack are numbered by date.

    Ids stay in the table ``ids``: those of evidence start with ``answer_``, those of abstention contain ``_abs``,
    and a session id may occur twice in a haystack.
    """

    variant: Literal["oracle", "s", "m"] = "s"  # which of the three files; their dates differ, so they are never mixed
    path: LocalPath | None = None  # null: where fetch puts it below $MEMLAB_HOME/data; .gz and .xz are read too

    def __post_init__(self) -> None:
        benchmarks.find(self._file(), self.path)
        known_types(self.types, TYPES)

    @property
    def name(self) -> str:
        """The variant's name, such as ``longmemeval_s``, with ``-pooled`` if it is pooled."""
        return self.sized_name(self._file())

    def load(self) -> Tables:
        """Read the file; raise MemlabError naming file, record and field where it is not as expected."""
        path = benchmarks.find(self._file(), self.path)
        build, fillers = Builder(), 0
        for corpus, record, where in self._records():
            fillers += _add(build, corpus, record, where)
        if (fillers == 0) != (self.variant == "oracle"):
            holds = "evidence sessions only" if fillers == 0 else "more than evidence sessions"
            other = "longmemeval_oracle" if fillers == 0 else "longmemeval_s or longmemeval_m"
            raise MemlabError(f"the haystacks hold {holds}, so this is not the file of {self._file()}",
                              where=str(path), fix=f"read it with data={other} (their dates differ: never mix them)")
        return self.cut(build.tables(), build.missing)

    def identity(self) -> dict[str, Any]:
        """Return the benchmark, checksum and options."""
        return {"benchmark": self._file(), "sha256": readers.sha256(benchmarks.find(self._file(), self.path)),
                **self.options()}

    def grouping(self) -> GroupBy:
        """Group the questions that share evidence: every question has a haystack, but haystacks share sessions."""
        return "evidence"

    def _file(self) -> str:
        return f"longmemeval_{self.variant}"

    def _records(self) -> Iterator[tuple[int, dict[str, Any], str]]:
        """Yield (number, record, place) of what must be read; ``Subset.cut`` alone decides which questions stay.

        A split needs all records, since its halves depend on them, and so does growing, which draws from all haystacks;
        otherwise reading ends when there are enough.
        """
        everything = self.split is not None or self.grows()
        path, count = benchmarks.find(self._file(), self.path), 0
        for number, record in enumerate(readers.records(path)):
            where = f"{path}, record {number}"
            readers.expect_format(record, "LongMemEval", where)
            where += f" ({readers.need(record, 'question_id', str, where)})"
            kind = readers.need(record, "question_type", str, where)
            if kind not in TYPES:
                raise MemlabError(f"expected one of {', '.join(TYPES)}, got '{kind}'",
                                  where=f"{where}, field question_type")
            if not everything and self.types is not None and kind not in self.types:
                continue
            yield number, record, where
            count += 1
            if not everything and self.sample is None and count == self.limit:
                return
        if count == 0:
            raise MemlabError(f"no question is of the types {', '.join(self.types or ())}", where=str(path))


def _add(build: Builder, corpus: int, record: dict[str, Any], where: str) -> int:
    """Add a record; its number is the question's and the corpus's. Return how many sessions are no evidence.

    Of a knowledge update the evidence before the latest session is outdated, unless the question is about the past.
    """
    name = record["question_id"]
    evidence = set(readers.texts(record, "answer_session_ids", where))
    build.corpus(corpus=corpus, name=name)
    sessions = _haystack(record, where)
    fillers, told = 0, list[tuple[int, list[int | None]]]()
    for session, (said_on, session_name, turns, spot) in enumerate(sessions):
        build.session(corpus=corpus, session=session, said_on=said_on, name=session_name)
        answering = _add_turns(build, corpus, session, turns, session_name, spot)
        if session_name in evidence:
            told.append((session, answering or [None]))
        else:
            fillers += 1
    text, abstain = readers.need(record, "question", str, where), "_abs" in name
    updated = record["question_type"] == "knowledge-update" and not abstain and not PAST.search(text)
    for session, marked in told:
        for turn in marked:
            build.evidence(question=corpus, session=session, turn=turn)
            if updated and session != told[-1][0]:
                build.outdated(question=corpus, session=session, turn=turn)
    build.missing_evidence(question=corpus, number=len(evidence - {session_name for _, session_name, *_ in sessions}))
    build.question(
        question=corpus, corpus=corpus, text=text, name=name,
        asked_on=_moment(readers.need(record, "question_date", str, where), f"{where}, field question_date"),
        answer=str(readers.need(record, "answer", (str, int, float), where)), category=record["question_type"],
        abstain=abstain, scored=fillers < len(sessions) and not abstain,
    )
    return fillers


def _haystack(record: dict[str, Any], where: str) -> list[tuple[datetime, str, list[Any], str]]:
    """Return (date, id, turns, place in the file) of each session, sorted by date: the file is sorted by day only."""
    lists = [readers.need(record, f"haystack_{part}", list, where) for part in ("dates", "session_ids", "sessions")]
    if len({len(part) for part in lists}) != 1:
        raise MemlabError("expected as many dates and ids as sessions, got "
                          + ", ".join(str(len(part)) for part in lists) + " (dates, ids, sessions)",
                          where=f"{where}, field haystack_sessions")
    sessions = []
    for at, (date, name, turns) in enumerate(zip(*lists)):
        spot = f"{where}, field haystack_sessions[{at}]"
        if type(turns) is not list:
            raise MemlabError("expected a list of turns", where=spot)
        sessions.append((_moment(date, f"{where}, field haystack_dates[{at}]"),
                         readers.text_of(name, f"{where}, field haystack_session_ids[{at}]"), turns, spot))
    return sorted(sessions, key=lambda session: session[0])


def _add_turns(build: Builder, corpus: int, session: int, turns: list[Any], name: str, where: str
               ) -> list[int | None]:
    """Add a session's turns, blank ones too; return those marked as having the answer (no mark means no)."""
    answering: list[int | None] = []
    for turn, item in enumerate(turns):
        spot = f"{where}[{turn}]"
        role = readers.choice(item, "role", ROLES, spot)
        build.turn(corpus=corpus, session=session, turn=turn, role=role, speaker=None,
                   text=readers.need(item, "content", str, spot), name=f"{name}_{turn + 1}")
        if "has_answer" in item and readers.need(item, "has_answer", bool, spot):
            answering.append(turn)
    return answering


def _moment(value: object, where: str) -> datetime:
    """Read a date; the name of the day may be missing."""
    date = _DAY_NAME.sub("", readers.text_of(value, where), count=1)
    return readers.moment(date, "%Y/%m/%d %H:%M", where, "2023/05/20 (Sat) 02:21")
