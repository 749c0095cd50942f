"""Sessions of a live memory as JSON lines, in the form of ``data=custom``: written, and read from a file or folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from memlab.chats.sessions import distinct
from memlab.data.custom import Custom
from memlab.data.fields import FIELDS
from memlab.data.jsonl import SESSIONS, SessionLine, first_faults, read, read_sessions
from memlab.errors import Faults, MemlabError
from memlab.live.sessions import Entry, Session, Turn, valid
from memlab.runtime.clock import Clock
from memlab.runtime.files import atomic_path


def sessions_of_folder(folder: Path, timezone: str | None = None) -> list[Session]:
    """Return the sessions of a folder of ``memlab import``, in the order of its sessions.jsonl.

    Raises Faults with all that is wrong with the folder, and MemlabError for one with the sessions of several people.
    """
    data = Custom(path=folder, timezone=timezone or "UTC")
    content = read(data.folder, data.zone)
    if content.faults:
        raise Faults(content.faults)
    return _sessions(content.sessions, folder)


def sessions_of_file(file: Path) -> list[Session]:
    """Return the sessions of a file that ``write`` wrote, or of a sessions.jsonl; raises as ``sessions_of_folder``."""
    if file.is_file() and not file.stat().st_size:  # of a memory without sessions
        return []
    faults: list[str] = []
    lines, _ = read_sessions(file, Clock(), faults)
    if faults:
        raise Faults(first_faults(faults))
    return _sessions(lines, file)


def _sessions(lines: Sequence[SessionLine], place: Path) -> list[Session]:
    corpora = sorted({line.corpus for line in lines})
    if len(corpora) > 1:
        raise MemlabError(f"{SESSIONS} has {len(corpora)} corpora ({', '.join(corpora):.80}), and a memory holds one",
                          where=str(place), fix="write a folder for each corpus")
    return [Session(line.said_on, [Turn(**turn.model_dump()) for turn in line.turns],
                    line.session if line.named else None,
                    **{name: getattr(line, name) for name in FIELDS}, metadata=line.metadata) for line in lines]


def lines_of(entries: Iterable[Entry], folder: Path, clock: Clock) -> Iterator[str]:
    """Yield the line of each session of a memory; one without a name is given one that no other has, and is marked.

    What is not valid today is left out: earlier versions and deprecated turns.
    """
    corpus = folder.resolve().name or "memory"
    sessions = [(entry.id, entry.session) for entry in valid(entries, clock) if entry.session]
    names = distinct((f"session {number}" for number, session in sessions if session.name is None),
                     [session.name for _, session in sessions if session.name is not None])
    for _, session in sessions:
        yield _line(corpus, next(names) if session.name is None else session.name, session)


def _line(corpus: str, name: str, session: Session) -> str:
    turns = [{"role": turn.role, "text": turn.text,
              **_non_null(speaker=turn.speaker, offset=turn.offset, page=turn.page)} for turn in session.turns]
    said_on = session.said_on and session.said_on.isoformat()
    line = json.dumps({"corpus": corpus, "session": name, **({} if session.name is not None else {"named": False}),
                       "said_on": said_on, **session.fields(), **_non_null(metadata=dict(session.metadata) or None),
                       "turns": turns})
    return line.replace("\x7f", "\\u007f")  # ASCII that a terminal shows: no character of a text ends the line


def _non_null(**values: object) -> dict[str, object]:
    return {name: value for name, value in values.items() if value is not None}


def write(lines: Iterable[str], out: Path) -> int:
    """Write lines to a new file that only its owner can read; return how many there are."""
    if out.exists():
        raise MemlabError("the file is there already", where=str(out), fix="give a new one, or remove it first")
    written = 0
    with atomic_path(out) as temporary:
        temporary.touch(0o600)
        with temporary.open("w", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line}\n")
                written += 1
    return written
