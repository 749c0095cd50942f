"""Reading sessions.jsonl and questions.jsonl, the user's own files: every fault by file, line and field.

memlab/data/custom.py shows the format.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from memlab.errors import did_you_mean

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


class TurnLine(_Line):
    """What was said at once."""

    role: Literal["user", "assistant"]
    text: str
    speaker: str | None = None


class SessionLine(_Line):
    """A line of sessions.jsonl."""

    corpus: Name
    session: Name
    said_on: Moment
    turns: list[TurnLine]


class Evidence(_Line):
    """A session, or a turn of it, that answers a question."""

    session: Name
    turn: Annotated[int, Field(ge=0)] | None = None


class QuestionLine(_Line):
    """A line of questions.jsonl."""

    question: Name
    corpus: Name
    text: Name
    asked_on: Moment | None = None
    answer: str | None = None
    category: Name = "all"
    evidence: list[Evidence] = []
    abstain: bool = False


Kind = TypeVar("Kind", SessionLine, QuestionLine)
Sessions = dict[tuple[str, str], SessionLine]


class FolderContent(NamedTuple):
    """What a folder holds, and all that is wrong with it."""

    sessions: Sessions
    questions: dict[str, QuestionLine]
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
    return read(folder if folder.is_dir() else folder.parent).faults


def read(folder: Path) -> FolderContent:
    """Read both files of a folder, and note all that is wrong with them."""
    faults: list[str] = []
    sessions: Sessions = {}
    corpora: set[str] = set()
    for where, raw, session in records(folder / SESSIONS, SessionLine, faults):
        corpora.add(str(raw.get("corpus")))
        if session is not None and sessions.setdefault((session.corpus, session.session), session) is not session:
            faults.append(f"{where}, field session: '{session.session}' was there before in '{session.corpus}'")
    whole = not faults  # a session that could not be read may be the one that a question names
    questions: dict[str, QuestionLine] = {}
    for where, _, question in records(folder / QUESTIONS, QuestionLine, faults):
        if question is None:
            continue
        if questions.setdefault(question.question, question) is not question:
            faults.append(f"{where}, field question: '{question.question}' was there before")
        if question.corpus not in corpora:
            hint = f"; {did_you_mean(question.corpus, corpora)}" if whole and corpora else ""
            faults.append(f"{where}, field corpus: no session has the corpus '{question.corpus}'{hint}")
        elif whole:
            faults += [f"{where}, field {fault}" for fault in _wrong_evidence(question, sessions)]
    return FolderContent(sessions, questions, faults)


def _wrong_evidence(question: QuestionLine, sessions: Sessions) -> Iterator[str]:
    for i, cited in enumerate(question.evidence):
        session = sessions.get((question.corpus, cited.session))
        if session is None:
            yield f"evidence[{i}].session: '{question.corpus}' has no session '{cited.session}'"
        elif cited.turn is not None and cited.turn >= len(session.turns):
            yield f"evidence[{i}].turn: session '{cited.session}' has {len(session.turns)} turns, counted from 0"
        elif question.asked_on is not None and session.said_on.date() > question.asked_on.date():
            yield (f"evidence[{i}].session: '{cited.session}' was said on {session.said_on:%Y-%m-%d}, after the "
                   "question (asked_on), and will never be retrieved")


def records(path: Path, model: type[Kind], faults: list[str]) -> Iterator[tuple[str, dict[str, Any], Kind | None]]:
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
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _fault(error: Any, model: type[BaseModel]) -> str:
    """Describe pydantic's finding in the words of the file."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error["loc"]).lstrip(".")
    place = f", field {field}" if field else ""
    if error["type"] == "missing":
        return f"{place}: is missing"
    if error["type"] == "extra_forbidden":
        inner: dict[str, type[BaseModel]] = {"turns": TurnLine, "evidence": Evidence}
        owner = inner.get(str(error["loc"][0]), model)
        return f"{place}: is no field of this file; {did_you_mean(str(error['loc'][-1]), owner.model_fields)}"
    message = error["msg"].removeprefix("Value error, ")
    got = repr(error["input"]) if field else ""
    said = f"{message[0].lower()}{message[1:]}"
    return f"{place}: {said}, got {got if len(got) <= 60 else got[:57] + '...'}" if got else f"{place}: {said}"
