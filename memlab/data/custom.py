"""Your own conversations: a folder with ``sessions.jsonl`` and ``questions.jsonl``, one JSON object a line.

sessions.jsonl, one chat or one meeting a line (``speaker`` may be left out; people talking to each other are all
users, and have names)::

    {"corpus": "ann", "session": "s1", "said_on": "2023-05-20", "turns": [
        {"role": "user", "text": "I adopted a cat."}, {"role": "assistant", "text": "Lovely!"}]}

questions.jsonl; only question, corpus and text are needed. ``evidence`` names what answers the question: sessions,
and turns counted from 0 where they are known. Without ``asked_on`` the day of the corpus' last session is taken::

    {"question": "q1", "corpus": "ann", "text": "Which pet do I have?", "asked_on": "2023-06-01T18:30",
     "answer": "a cat", "category": "pets", "evidence": [{"session": "s1", "turn": 0}], "abstain": false}

(An object must stand on one line; it is broken here to be readable.)
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memlab.data import source, subset
from memlab.data.build import Builder
from memlab.errors import Faults, MemlabError, did_you_mean
from memlab.stage import LocalPath, Names, stage
from memlab.tables import Tables

SESSIONS, QUESTIONS = "sessions.jsonl", "questions.jsonl"


def _moment(value: object) -> object:
    """Read an ISO date, with or without a time of day; a time zone is dropped, for days are as people lived them."""
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None) if isinstance(value, str) else value
    except ValueError:
        raise ValueError("expected a date such as 2023-05-20 or 2023-05-20T18:30") from None


Moment = Annotated[datetime, BeforeValidator(_moment)]
Name = Annotated[str, Field(min_length=1)]


class _Line(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Turn(_Line):
    """What was said at once."""

    role: Literal["user", "assistant"]
    text: str
    speaker: str | None = None


class Session(_Line):
    """A line of sessions.jsonl."""

    corpus: Name
    session: Name
    said_on: Moment
    turns: list[Turn]


class Evidence(_Line):
    """A session, or a turn of it, that answers a question."""

    session: Name
    turn: Annotated[int, Field(ge=0)] | None = None


class Question(_Line):
    """A line of questions.jsonl."""

    question: Name
    corpus: Name
    text: Name
    asked_on: Moment | None = None
    answer: str | None = None
    category: Name = "all"
    evidence: list[Evidence] = []
    abstain: bool = False


Kind = TypeVar("Kind", Session, Question)
Sessions = dict[tuple[str, str], Session]


class Read(NamedTuple):
    """What a folder holds, and all that is wrong with it."""

    sessions: Sessions
    questions: dict[str, Question]
    faults: list[str]


def validate(folder: Path) -> list[str]:
    """Return all faults of a folder (or of the folder of a file), each naming file, line and field.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "sessions.jsonl").write_text(
    ...     '{"corpus": "ann", "session": "s1", "said_on": "20 May", "turns": [{"role": "bot", "text": "Hi"}]}')
    >>> _ = (folder / "questions.jsonl").write_text('{"question": "q1", "corpus": "bob", "text": "Which pet?"}')
    >>> for fault in validate(folder): print(fault)
    sessions.jsonl, line 1, field said_on: expected a date such as 2023-05-20 or 2023-05-20T18:30, got '20 May'
    sessions.jsonl, line 1, field turns[0].role: input should be 'user' or 'assistant', got 'bot'
    questions.jsonl, line 1, field corpus: no session has the corpus 'bob'
    """
    return _read(folder if folder.is_dir() else folder.parent).faults


def _read(folder: Path) -> Read:
    faults: list[str] = []
    sessions: Sessions = {}
    corpora: set[str] = set()
    for where, raw, session in _lines(folder / SESSIONS, Session, faults):
        corpora.add(str(raw.get("corpus")))
        if session is not None and sessions.setdefault((session.corpus, session.session), session) is not session:
            faults.append(f"{where}, field session: '{session.session}' was there before in '{session.corpus}'")
    whole = not faults  # a session that could not be read may be the one that a question names
    questions: dict[str, Question] = {}
    for where, _, question in _lines(folder / QUESTIONS, Question, faults):
        if question is None:
            continue
        if questions.setdefault(question.question, question) is not question:
            faults.append(f"{where}, field question: '{question.question}' was there before")
        if question.corpus not in corpora:
            hint = f"; {did_you_mean(question.corpus, corpora)}" if whole and corpora else ""
            faults.append(f"{where}, field corpus: no session has the corpus '{question.corpus}'{hint}")
        elif whole:
            faults += [f"{where}, field {fault}" for fault in _wrong_evidence(question, sessions)]
    return Read(sessions, questions, faults)


def _wrong_evidence(question: Question, sessions: Sessions) -> Iterator[str]:
    for i, cited in enumerate(question.evidence):
        session = sessions.get((question.corpus, cited.session))
        if session is None:
            yield f"evidence[{i}].session: '{question.corpus}' has no session '{cited.session}'"
        elif cited.turn is not None and cited.turn >= len(session.turns):
            yield f"evidence[{i}].turn: session '{cited.session}' has {len(session.turns)} turns, counted from 0"
        elif question.asked_on is not None and session.said_on.date() > question.asked_on.date():
            yield (f"evidence[{i}].session: '{cited.session}' was said on {session.said_on:%Y-%m-%d}, after the "
                   "question (asked_on), and will never be retrieved")


def _lines(path: Path, model: type[Kind], faults: list[str]) -> Iterator[tuple[str, dict[str, Any], Kind | None]]:
    """Yield (place, object, record or null) a line; add what is wrong to the faults."""
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        faults.append(f"{path.name}: cannot be read ({getattr(fault, 'strerror', None) or 'it is not UTF-8'}) in "
                      f"{path.parent}; see memlab/data/custom.py for what to write")
        return
    found = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found, where = True, f"{path.name}, line {number}"
        try:
            record: Kind | None = model.model_validate_json(line)
        except ValidationError as invalid:
            record = None
            faults += [f"{where}{_fault(error, model)}" for error in invalid.errors(include_url=False)]
        yield where, record.model_dump() if record is not None else _object(line), record
    if not found:
        faults.append(f"{path.name}: there is no line in it")


def _object(line: str) -> dict[str, Any]:
    """The object on a line that is no valid record; empty if it is not even that."""
    import json

    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fault(error: Any, model: type[BaseModel]) -> str:
    """Say what pydantic found, in the words of the file."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    place = f", field {field}" if field else ""
    if error["type"] == "missing":
        return f"{place}: is missing"
    if error["type"] == "extra_forbidden":
        inner: dict[str, type[BaseModel]] = {"turns": Turn, "evidence": Evidence}
        owner = inner.get(str(error["loc"][0]), model)
        return f"{place}: is no field of this file; {did_you_mean(str(error['loc'][-1]), owner.model_fields)}"
    message = error["msg"].removeprefix("Value error, ")
    got = repr(error["input"]) if field else ""
    said = f"{message[0].lower()}{message[1:]}"
    return f"{place}: {said}, got {got if len(got) <= 60 else got[:57] + '...'}" if got else f"{place}: {said}"


@stage
class Custom:
    """The folder's sessions in the order of their days; a corpus is what one question may search."""

    path: LocalPath | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    types: Names | None = None
    split: Literal["a", "b"] | None = None
    pool: bool = False

    def __post_init__(self) -> None:
        if self.path is None or not self.path.is_dir():
            here = "no folder is given" if self.path is None else f"{self.path} is no folder"
            raise MemlabError(here, where="data.path", fix=f"give a folder that holds {SESSIONS} and {QUESTIONS}")

    @property
    def name(self) -> str:
        """The folder's name, after ``custom-``."""
        return f"custom-{self._folder().name}" + ("-pooled" if self.pool else "")

    def load(self) -> Tables:
        """Read the folder; raises Faults with everything that is wrong with it."""
        read = _read(self._folder())
        if read.faults:
            raise Faults(read.faults)
        build = Builder()
        corpora = {name: i for i, name in enumerate(dict.fromkeys(corpus for corpus, _ in read.sessions))}
        for name, corpus in corpora.items():
            build.corpus(corpus=corpus, name=name)
        places: dict[tuple[str, str], int] = {}
        last: dict[str, datetime] = {}
        for session in sorted(read.sessions.values(), key=lambda s: (corpora[s.corpus], s.said_on)):
            corpus, place = corpora[session.corpus], sum(c == session.corpus for c, _ in places)
            places[session.corpus, session.session], last[session.corpus] = place, session.said_on
            build.session(corpus=corpus, session=place, said_on=session.said_on, name=session.session)
            for t, turn in enumerate(session.turns):
                build.turn(corpus=corpus, session=place, turn=t, role=turn.role, speaker=turn.speaker, text=turn.text,
                           name=f"{session.session}:{t}")
        for number, question in enumerate(read.questions.values()):
            build.question(question=number, corpus=corpora[question.corpus], text=question.text,
                           asked_on=question.asked_on or last[question.corpus], name=question.question,
                           answer=question.answer, category=question.category, abstain=question.abstain,
                           scored=bool(question.evidence))
            cited = {(places[question.corpus, e.session], e.turn) for e in question.evidence}
            for place, at in sorted(cited, key=lambda c: (c[0], -1 if c[1] is None else c[1])):
                build.evidence(question=number, session=place, turn=at)
        return subset.cut(build.tables(), limit=self.limit, types=self.types, split=self.split, pool=self.pool)

    def identity(self) -> dict[str, Any]:
        """Checksums of both files, and options."""
        sums = {name: source.sha256(self._folder() / name) for name in (SESSIONS, QUESTIONS)}
        return {"benchmark": "custom", **sums, **subset.options(self)}

    def notes(self) -> list[str]:
        """What a reader of the results must know."""
        undated = sum(q.asked_on is None for q in _read(self._folder()).questions.values())
        said = [f"{undated} questions have no date: the day of their corpus' last session is taken."] if undated else []
        return said + subset.notes(self)

    def clusters(self) -> bool:
        """Questions that search the same corpus are not independent."""
        corpora = [q.corpus for q in _read(self._folder()).questions.values()]
        return len(set(corpora)) < len(corpora)

    def _folder(self) -> Path:
        assert self.path is not None
        return self.path
