"""The key of a chat server: from a variable, or from the private note that ``python -m memlab.serve`` leaves.

Keys enter no message, no log and no identity.
"""

from __future__ import annotations

import os

from memlab.errors import MemlabError
from memlab.serving import records

NO_KEY = "none"
"""Sent where a server wants no key: the client sends something in any case, and must not take OPENAI_API_KEY."""


def server_key(url: str, key_env: str | None) -> str:
    """Return the key for a server; raises MemlabError where a variable is named and empty."""
    if key_env is not None:
        key = os.environ.get(key_env, "").strip()
        if not key:
            raise MemlabError(f"the key's variable {key_env} is empty", where=url, fix=f"export {key_env}=YOUR_KEY")
        return key
    return next((server.key or NO_KEY for server in records.readable() if _same(server.url, url)), NO_KEY)


def key_fix(key_env: str | None, key: str) -> str:
    """Return what to do where a server refuses a key."""
    if key_env is not None:
        return f"export {key_env}=YOUR_KEY with a key that this server takes"
    if key != NO_KEY:
        return "the note of the server is stale: start it again with `python -m memlab.serve MODEL`"
    return "name the variable that holds the key: chat.key_env=NAME (for the judge judge_chat.key_env=NAME)"


def starting(url: str) -> bool:
    """Return whether a server that was started here answers at this address, now or when it is ready."""
    return any(_same(server.url, url) for server in records.readable())


def start_fix(url: str, model: str) -> str:
    """Return what to do where no server answers; names the one that serves the model elsewhere, or those that run."""
    running = [server for server in records.readable() if not _same(server.url, url)]
    for server in running:
        if server.model == model:
            return f"chat.url={server.url}, where `python -m memlab.serve` says that it serves {model}"
    others = ", ".join(f"{server.name} at {server.url}" for server in running)
    return f"start the server (`python -m memlab.serve {model}`) or set chat.url" + (
        f"; running (`python -m memlab.serve list`): {others}" if others else "")


def _same(*urls: str) -> bool:
    return len({url.rstrip("/").replace("//localhost", "//127.0.0.1").removesuffix("/v1") for url in urls}) == 1
