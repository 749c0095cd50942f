"""The folder that ``data=custom`` reads, written from sessions."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from memlab.chats.sessions import ChatSession
from memlab.errors import MemlabError
from memlab.runtime.files import atomic_write

SESSIONS = "sessions.jsonl"


def write_folder(folder: Path, corpus: str, sessions: Iterable[ChatSession], *, replace: bool = False) -> bool:
    """Write sessions.jsonl; return False if the same sessions are there already.

    Raises MemlabError where other sessions are there and ``replace`` is false, and where the folder cannot be written.
    """
    content = "".join(json.dumps(_line(corpus, session), ensure_ascii=False) + "\n" for session in sessions)
    path = folder / SESSIONS
    try:
        if path.exists():
            if path.read_bytes() == content.encode():
                return False
            if not replace:
                raise MemlabError("other sessions are there already", where=str(path),
                                  fix="give another --out, or --replace")
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(path, content)
    except OSError as fault:
        raise MemlabError(f"it cannot be written ({fault.strerror or fault})", where=str(path),
                          fix="give another --out") from fault
    return True


def _line(corpus: str, session: ChatSession) -> dict[str, object]:
    turns = [{"role": turn.role, **({"speaker": turn.speaker} if turn.speaker else {}), "text": turn.text}
             for turn in session.turns]
    return {"corpus": corpus, "session": session.name,
            "said_on": session.said_on and session.said_on.isoformat(timespec="minutes"), "turns": turns}
