"""The user's own sessions.jsonl and questions.jsonl: their lines, and every fault by file, line and field.

memlab/data/custom.py shows the format.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from datetime import date, datetime, tzinfo
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, field_validator

from memlab.data.benchmarks import Builder
from memlab.data.chats.refusal import instead
from memlab.data.fields import read_metadata
from memlab.data.subset import Subset
from memlab.pipeline.stage import LocalPath, stage
from memlab.support.clock import Clock, read_moment, time_zone
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.foreign import MOST_BYTES, read_bytes
from memlab.support.paths import path_refusal

SESSIONS, QUESTIONS = "sessions.jsonl", "questions.jsonl"

MOST_FAULTS = 1000
"""Faults that are collected at most: a file of another kind has one on each line."""

MOST_OF_LINES = 4_000_000_000
"""Bytes of a file at most: some ten times those of the largest benchmark."""


def _moment(value: object) -> date | datetime | None:
    """Read a date, or a time of day with a UTC offset or without."""
    try:
        return None if value is None else read_moment(value)
    except MemlabError as fault:
        raise ValueError(f"expected a date: {fault.fix}") from None


Moment = Annotated[date | datetime | None, PlainValidator(_moment)]
Name = Annotated[str, Field(min_length=1)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Count = Annotated[int, Field(ge=0)]


class TurnLine(_Line):
    """A turn of a session; ``offset`` and ``page`` are those of a document's chunk in a live memory."""

    role: Literal["user", "assistant"]
    text: Annotated[str, Field(max_length=MOST_BYTES)]
    speaker: str | None = None
    offset: Count | None = None
    page: Count | None = None


class SessionLine(_Line):
    """A line of sessions.jsonl; ``said_on`` is null where the date is not known.

    What follows ``turns`` are fields by which sessions are filtered, in a live memory and by ``query/where``. A session
    that is not ``named`` has no name in a live memory: its name was made for the file, and ``origin`` tells it from
    others.
    """

    corpus: Name
    session: Name
    said_on: Moment
    turns: list[TurnLine]
    user: str | None = None
    agent: str | None = None
    room: str | None = None
    source: str | None = None
    kind: str | None = None
    metadata: dict[str, Any] | None = None
    named: bool = True
    origin: Name | None = None

    @field_validator("metadata")
    @classmethod
    def _is_json(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        try:
            return value and read_metadata(value)
        except MemlabError as error:
            raise ValueError(error.what) from error

    def fields(self) -> dict[str, Any]:
        """Return the fields and metadata that the line has."""
        return self.model_dump(include={"user", "agent", "room", "source", "kind", "metadata"}, exclude_none=True)


class Evidence(_Line):
    """A session, or a turn of it, that answers a question."""

    session: Name
    turn: Count | None = None


class QuestionLine(_Line):
    """A line of questions.jsonl."""

    question: Name
    corpus: Name
    text: Name
    asked_on: Moment = None
    answer: str | None = None
    category: Name = "all"
    evidence: list[Evidence] = []
    abstain: bool = False
    where: dict[str, Any] = {}


Kind = TypeVar("Kind", SessionLine, QuestionLine)


Extents = dict[str, tuple[datetime | None, int]]
"""Name of a session -> its date as the clock tells it, and its number of turns."""


class FolderContent(NamedTuple):
    """The sessions and questions of a folder, all its faults, and the clock of its times."""

    sessions: list[SessionLine]
    questions: list[QuestionLine]
    faults: list[str]
    clock: Clock


@stage
class FolderDataset(Subset):
    """A folder of the user's own, with questions.jsonl; ``kind`` begins its name, ``content`` describes the folder."""

    kind: ClassVar = ""
    content: ClassVar = ""

    path: str | LocalPath | None = None  # the folder; needed
    timezone: str = "UTC"  # name of the time zone whose days count, such as Europe/Rome, for times with a UTC offset

    def __post_init__(self) -> None:
        folder = None if self.path is None else Path(self.path)
        if folder is None or not folder.is_dir():
            problem = "no folder is given" if folder is None else f"{folder} is no folder"
            raise instead(folder, MemlabError(problem, where="data.path", fix=f"give a folder {self.content}"))
        if refusal := path_refusal(folder):
            raise MemlabError(refusal, where="data.path", fix="change its permissions")
        time_zone(self.timezone, "data.timezone")

    @property
    def folder(self) -> Path:
        """The folder, once it is checked."""
        assert self.path is not None
        return Path(self.path)

    @property
    def zone(self) -> tzinfo:
        """The time zone of the days."""
        return time_zone(self.timezone, "data.timezone")

    def clock(self) -> Clock:
        """Return the clock of the folder's times, which refuses those of the other kind."""
        raise NotImplementedError

    def options(self) -> dict[str, Any]:
        """Return the options as they enter a data set's identity."""
        return {**super().options(), "timezone": self.timezone}

    @property
    def name(self) -> str:
        """The folder's name, after the kind of data set."""
        return self.sized_name(f"{self.kind}-{self.folder.name}")


def add_question(build: Builder, number: int, question: QuestionLine, corpus: int, sessions: Mapping[str, int],
                 asked_on: date | datetime | None) -> None:
    """Add a question with its evidence; ``sessions`` maps the names of the corpus's sessions to their numbers."""
    build.question(question=number, corpus=corpus, text=question.text, asked_on=asked_on, name=question.question,
                   answer=question.answer, category=question.category, abstain=question.abstain,
                   scored=bool(question.evidence))
    build.fields(corpus=corpus, question=number, content=question.where)
    cited = {(sessions[e.session], e.turn) for e in question.evidence}
    for session, turn in sorted(cited, key=lambda c: (c[0], -1 if c[1] is None else c[1])):
        build.evidence(question=number, session=session, turn=turn)


def read(folder: Path, zone: tzinfo | None = None) -> FolderContent:
    """Read both files of a folder, and collect their first faults by file, line and field; there may be no questions.

    zone: time zone of the days; None is UTC.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sessions.jsonl").write_text(
    ...     '{"corpus": "ann", "session": "s1", "said_on": "20 May", "turns": [{"role": "bot", "text": "Hi"}]}')
    >>> for fault in read(folder).faults: print(fault)
    sessions.jsonl, line 1, field said_on: expected a date: write 2023-05-20, 2023-05-20T18:30 or \
2023-05-20T18:30+02:00, got '20 May'
    sessions.jsonl, line 1, field turns[0].role: input should be 'user' or 'assistant', got 'bot'
    """
    faults: list[str] = []
    clock = Clock(zone)
    sessions, corpora = read_sessions(folder / SESSIONS, clock, faults)
    complete = not faults  # else a session that could not be read may be the one that a question names
    questions = []
    path = folder / QUESTIONS
    for where, question in read_questions(path, QuestionLine, faults) if path.exists() else ():
        questions.append(question)
        asked_on = local(clock, question.asked_on, f"{where}, field asked_on", faults)
        if complete and question.corpus not in corpora:
            faults.append(f"{where}, field corpus: no session has the corpus '{question.corpus}'; "
                          f"{did_you_mean(question.corpus, corpora)}")
        elif complete:
            faults += evidence_faults(question, asked_on, corpora[question.corpus], where, "session", "turns")
    return FolderContent(sessions, questions, first_faults(faults), clock)


def read_sessions(path: Path, clock: Clock, faults: list[str]) -> tuple[list[SessionLine], dict[str, Extents]]:
    """Return the sessions of a file, and their extents by corpus; add the faults of its lines."""
    sessions: list[SessionLine] = []
    corpora: dict[str, Extents] = {}
    for where, session in _records(path, SessionLine, faults):
        extents = corpora.setdefault(session.corpus, {})
        if session.session in extents:
            faults.append(f"{where}, field session: '{session.session}' was there before in '{session.corpus}'")
        said_on = local(clock, session.said_on, f"{where}, field said_on", faults)
        extents[session.session] = said_on, len(session.turns)
        sessions.append(session)
    return sessions, corpora


def local(clock: Clock, value: date | datetime | str | None, where: str, faults: list[str]) -> datetime | None:
    """Return a time as the clock tells it; add the fault, and return None, for one that it refuses."""
    try:
        return None if value is None else clock.local(value, where)
    except MemlabError as fault:
        faults.append(str(fault))
        return None


def first_faults(faults: list[str]) -> list[str]:
    """Return the faults, or the first ``MOST_FAULTS`` of them and that reading stopped there."""
    if len(faults) <= MOST_FAULTS:
        return faults
    return [*faults[:MOST_FAULTS], f"…and reading stopped after {MOST_FAULTS:,} faults"]


def read_questions(path: Path, model: type[QuestionLine], faults: list[str]) -> Iterator[tuple[str, QuestionLine]]:
    """Yield (place, question) for each valid line; add the faults of the lines, and names that occur twice."""
    names = set()
    for where, question in _records(path, model, faults):
        if question.question in names:
            faults.append(f"{where}, field question: '{question.question}' was there before")
        names.add(question.question)
        yield where, question


def evidence_faults(question: QuestionLine, asked_on: datetime | None,
                    extents: Mapping[str, tuple[datetime | None, int]], where: str, session: str,
                    turns: str) -> Iterator[str]:
    """Yield each fault of a question's evidence; ``asked_on`` is its time as the clock of the data tells it.

    ``extents`` maps the name of each session to its date and its number of turns; ``session`` and ``turns`` are the
    words for them in the message.
    """
    for i, cited in enumerate(question.evidence):
        place, name = f"{where}, field evidence[{i}]", cited.session
        said_on, count = extents.get(name, (None, 0))
        if name not in extents:
            yield f"{place}.session: there is no {session} '{name}'; {did_you_mean(name, extents)}"
        elif cited.turn is not None and cited.turn >= count:
            yield f"{place}.turn: '{name}' has {count} {turns}, counted from 0"
        elif asked_on and said_on and said_on.date() > asked_on.date():
            yield (f"{place}.session: '{name}' is of {said_on:%Y-%m-%d}, after the question (asked_on), and will "
                   "never be retrieved")


def _records(path: Path, model: type[Kind], faults: list[str]) -> Iterator[tuple[str, Kind]]:
    """Yield (place, record) for each valid line; add the faults of the file and its lines, ``MOST_FAULTS`` and some.
    """
    try:
        text = read_bytes(path, MOST_OF_LINES).decode("utf-8-sig").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as fault:
        faults.append(f"{path.name}: cannot be read in {path.parent} ({_unreadable(path, fault)})")
        return
    if not text.strip():
        faults.append(f"{path.name}: there is no line in it")
    for number, line in enumerate(text.split("\n"), start=1):  # texts may hold other line separators
        if not line.strip():
            continue
        if len(faults) > MOST_FAULTS:
            return
        where = f"{path.name}, line {number}"
        try:
            yield where, model.model_validate_json(line)
        except ValidationError as invalid:
            faults += [f"{where}{_fault(error, model)}" for error in invalid.errors(include_url=False)]


def _unreadable(path: Path, fault: OSError | UnicodeDecodeError) -> str:
    """Return why a file cannot be read, and what to type."""
    if isinstance(fault, FileNotFoundError) and path.name == SESSIONS:
        return f"there is none; memlab import EXPORT --out {shlex.quote(str(path.parent))} writes it from a chat export"
    if isinstance(fault, OSError):
        return fault.strerror or str(fault)
    name, new = shlex.quote(str(path)), shlex.quote(f"{path}.new")
    encoding = "utf-16" if fault.object[:2] in (b"\xff\xfe", b"\xfe\xff") else "cp1252"
    return (f"it is not UTF-8: byte {fault.start:,} is 0x{fault.object[fault.start]:02x}; if it is {encoding}: "
            f"iconv -f {encoding} -t utf-8 {name} > {new} && mv {new} {name}")


def _fault(error: Any, model: type[BaseModel]) -> str:
    """Describe an error of pydantic in the words of the file."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    place = f", field {field}" if field else ""
    if error["type"] == "missing":
        return f"{place}: is missing"
    if error["type"] == "extra_forbidden":
        inner: dict[str, type[BaseModel]] = {"turns": TurnLine, "evidence": Evidence}
        owner = inner.get(str(error["loc"][0]), model)
        return f"{place}: is no field of this file; {did_you_mean(str(error['loc'][-1]), owner.model_fields)}"
    message = error["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    value = repr(error["input"])
    return f"{place}: {message}" + (f", got {value if len(value) <= 60 else value[:57] + '...'}" if field else "")
