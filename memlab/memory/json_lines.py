"""Sessions of a live memory as JSON lines, in the form of ``data=custom``: written, and read from a file or folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import tzinfo
from pathlib import Path

from memlab.data.chats.conversation import distinct
from memlab.data.custom import Custom
from memlab.data.fields import FIELDS
from memlab.data.jsonl import SESSIONS, SessionLine, first_faults, read_sessions
from memlab.memory.sessions import Entry, Session, Turn, valid
from memlab.support.clock import Clock
from memlab.support.errors import Faults, MemlabError
from memlab.support.files import atomic_path


def read_folder(folder: Path, timezone: str | None = None) -> list[Entry]:
    """Return the sessions of a folder of ``memlab import``; raises as ``read_file``."""
    data = Custom(path=folder, timezone=timezone or "UTC")
    return read_file(data.folder / SESSIONS, data.zone)


def read_file(file: Path, zone: tzinfo | None = None) -> list[Entry]:
    """Return the sessions of a file that ``write`` wrote, or of a sessions.jsonl, numbered by their places in it.

    Raises Faults with all that is wrong with its lines, and MemlabError for one with the sessions of several people.

    zone: time zone of the days; None is UTC.
    """
    if file.is_file() and not file.stat().st_size:  # of a memory without sessions
        return []
    faults: list[str] = []
    lines, corpora = read_sessions(file, Clock(zone), faults)
    if faults:
        raise Faults(first_faults(faults))
    if len(corpora) > 1:
        raise MemlabError(f"{file.name} has {len(corpora)} corpora ({', '.join(sorted(corpora)):.80}), "
                          "and a memory holds one", where=str(file.parent), fix="write a folder for each corpus")
    return [_entry(number, line) for number, line in enumerate(lines)]


def _entry(number: int, line: SessionLine) -> Entry:
    session = Session(line.said_on, [Turn(**turn.model_dump()) for turn in line.turns],
                      line.session if line.named else None,
                      **{name: getattr(line, name) for name in FIELDS}, metadata=line.metadata)
    entry = Entry.new(number, session)
    return entry if line.origin is None else replace(entry, origin=line.origin)


def lines_of(entries: Iterable[Entry], folder: Path, clock: Clock) -> Iterator[str]:
    """Yield the line of each session of a memory; one without a name is given one that no other has, and is marked.

    What is not valid today is left out: earlier versions and deprecated turns.
    """
    corpus = folder.resolve().name or "memory"
    left = valid(entries, clock)
    names = distinct((f"session {entry.id}" for entry in left if entry.session.name is None),
                     [entry.session.name for entry in left if entry.session.name is not None])
    for entry in left:
        yield line_of(corpus, entry.session.name or next(names), entry)


def line_of(corpus: str, name: str, entry: Entry) -> str:
    """Return the line of a session, which is marked if it has no name of its own."""
    session = entry.session
    turns = [{"role": turn.role, "text": turn.text,
              **_non_null(speaker=turn.speaker, offset=turn.offset, page=turn.page)} for turn in session.turns]
    said_on = session.said_on and session.said_on.isoformat()
    marks = {} if session.name else {"named": False, "origin": entry.origin}
    line = json.dumps({"corpus": corpus, "session": name, **marks, "said_on": said_on, **session.fields(),
                       **_non_null(metadata=dict(session.metadata) or None), "turns": turns})
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
