"""The key of a chat server: from a variable, or from the private note that ``python -m memlab.serve`` leaves.

Keys enter no message, no log and no identity.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from memlab.errors import MemlabError

NO_KEY = "none"
"""Sent where a server wants no key: the client sends something in any case, and must not take OPENAI_API_KEY."""


def home() -> Path:
    """Return the folder where memlab keeps what it made: ``$MEMLAB_HOME``."""
    return Path(os.environ.get("MEMLAB_HOME") or "~/.cache/memlab").expanduser()


def notes() -> list[dict[str, Any]]:
    """Return the notes of servers started here: url, key, model, pid each; the newest first."""
    found = []
    for path in (home() / "serving").glob("*.json"):
        try:
            note, when = json.loads(path.read_text()), path.stat().st_mtime_ns
        except (OSError, ValueError):  # taken away meanwhile, or half written
            continue
        if isinstance(note, dict) and isinstance(note.get("url"), str):
            found.append((when, note))
    return [note for _, note in sorted(found, key=lambda pair: -pair[0])]


def server_key(url: str, key_env: str | None) -> str:
    """Return the key for a server; raises MemlabError where a variable is named and empty."""
    if key_env is not None:
        key = os.environ.get(key_env, "").strip()
        if not key:
            raise MemlabError(f"the key's variable {key_env} is empty", where=url, fix=f"export {key_env}=YOUR_KEY")
        return key
    return next((str(note.get("key") or NO_KEY) for note in notes() if _same(note["url"], url)), NO_KEY)


def key_fix(key_env: str | None, key: str) -> str:
    """Say what helps where a server refuses a key."""
    if key_env is not None:
        return f"export {key_env}=YOUR_KEY with a key that this server takes"
    if key != NO_KEY:
        return "the note of the server is stale: start it again with `python -m memlab.serve MODEL`"
    return "name the variable that holds the key: chat.key_env=NAME (for the judge judge_chat.key_env=NAME)"


def start_fix(url: str, model: str) -> str:
    """Say what helps where no server answers; names the one that serves the model elsewhere."""
    for note in notes():
        if note.get("model") == model and not _same(note["url"], url):
            return f"chat.url={note['url']}, where `python -m memlab.serve` says that it serves {model}"
    return f"start the server (`python -m memlab.serve {model}`) or set chat.url"


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _plain(url: str) -> str:
    return url.rstrip("/").replace("//localhost", "//127.0.0.1").removesuffix("/v1")
