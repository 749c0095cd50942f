"""The folder that ``data=custom`` reads: sessions.jsonl, and import.json with the settings of all imports into it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from memlab.data.chats.merge import Changes, Line, merge
from memlab.data.chats.sessions import ChatSession, Split
from memlab.support import foreign
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write, disk_faults, write_json
from memlab.support.text.display import replace_surrogates

SESSIONS, SETTINGS = "sessions.jsonl", "import.json"

MOST_OF_SESSIONS = 4_000_000_000
"""Bytes of sessions.jsonl at most, as ``data=custom`` reads it."""

_ELSEWHERE = "give another --out, or --replace"


@dataclass(frozen=True)
class ImportSettings:
    """What all imports into a folder have in common: with others, the same conversation would be other sessions."""

    corpus: str
    split: Split
    timezone: str


def common_settings(folder: Path, given: Mapping[str, Any], default: ImportSettings, *,
                    fresh: bool = False) -> ImportSettings:
    """Return the settings of a folder, or for a ``fresh`` one those that are given, and the default for the rest.

    Raises MemlabError where a given one differs from the folder's, or where another program wrote the sessions.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if fresh or not (folder / SESSIONS).exists():
        return replace(default, **chosen)
    try:
        stored = foreign.read_json(folder / SETTINGS)
    except (OSError, ValueError):
        stored = {}
    names = [field.name for field in fields(ImportSettings)]
    if any(not isinstance(stored.get(name), str) for name in names):
        raise MemlabError("other sessions are there already, and memlab import did not write them",
                          where=str(folder / SESSIONS), fix=_ELSEWHERE)
    settings = ImportSettings(**{name: stored[name] for name in names})
    for name, value in chosen.items():
        if value != stored[name]:
            raise MemlabError(f"{folder} holds sessions of --{name} {stored[name]}", where=f"--{name} {value}",
                              fix=f"leave --{name} out, or {_ELSEWHERE}")
    return settings


def update_folder(folder: Path, settings: ImportSettings, sessions: Iterable[ChatSession], *, source: str = "",
                  fresh: bool = False) -> Changes:
    """Add sessions to a folder, or replace those of a ``fresh`` one; an import that changes nothing writes nothing.

    source: name of the export's format. Raises MemlabError where the folder cannot be read or written.
    """
    path = folder / SESSIONS
    lines = [_line(settings.corpus, session, source) for session in sessions]
    with disk_faults(path, other="give another --out"):
        first = not path.exists()
        fresh = fresh or first
        merged, changes = merge([] if fresh else _read(path), lines)
        merged.sort(key=lambda line: line["said_on"] or "")
        content = "".join(f"{replace_surrogates(json.dumps(line, ensure_ascii=False))}\n" for line in merged)
        if first:  # never sessions without settings: a later import would refuse them
            write_json(folder / SETTINGS, asdict(settings))
        if first or path.read_bytes() != content.encode():
            if fresh and not first:  # never other sessions' settings beside these
                (folder / SETTINGS).unlink(missing_ok=True)
            atomic_write(path, content)
        if fresh and not first:
            write_json(folder / SETTINGS, asdict(settings))
    return changes


def _line(corpus: str, session: ChatSession, source: str) -> Line:
    turns = [{"role": turn.role, **({"speaker": turn.speaker} if turn.speaker else {}), "text": turn.text}
             for turn in session.turns]
    fields = {key: value for key, value in (("room", session.room), ("source", source)) if value}
    return {"corpus": corpus, "session": session.name,
            "said_on": session.said_on and session.said_on.isoformat(timespec="minutes"), **fields, "turns": turns}


def _read(path: Path) -> list[Line]:
    """Return the lines of sessions.jsonl; raise MemlabError for one that is no session."""
    stored = []
    try:
        texts = foreign.read_bytes(path, MOST_OF_SESSIONS).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as fault:
        raise _no_session(path, "it is not UTF-8") from fault
    for number, text in enumerate(texts, start=1):
        if not text.strip():
            continue
        try:
            line = foreign.load_json(text)
        except ValueError as fault:
            raise _no_session(path, f"line {number}: {str(fault)[:80]}") from fault
        if not _is_session(line):
            raise _no_session(path, f"line {number} is no session")
        stored.append(line)
    return stored


def _is_session(line: object) -> bool:
    turns = line.get("turns") if isinstance(line, dict) else None
    return (isinstance(line, dict) and isinstance(turns, list) and isinstance(line.get("said_on", 0), str | None)
            and all(isinstance(line.get(name), str) for name in ("corpus", "session"))
            and all(isinstance(turn, dict) and isinstance(turn.get("text"), str) and isinstance(turn.get("role"), str)
                    for turn in turns))


def _no_session(path: Path, what: str) -> MemlabError:
    return MemlabError(f"the sessions there cannot be added to: {what}", where=str(path),
                       fix=f"see memlab data check, or {_ELSEWHERE}")
