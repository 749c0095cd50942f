"""The key of a chat server: from a variable, or from the private record of ``memlab serve``.

Keys enter no message, no log and no identity.
"""

from __future__ import annotations

import os

from memlab.errors import MemlabError
from memlab.servers import records

NO_KEY = "none"
"""Sent if a server needs no key: the client always sends one, and must not send OPENAI_API_KEY."""


def server_key(url: str, key_env: str | None) -> str:
    """Return the key for a server; raises MemlabError if the named variable is empty."""
    if key_env is not None:
        key = os.environ.get(key_env, "").strip()
        if not key:
            raise MemlabError(f"the key's variable {key_env} is empty", where=url, fix=f"export {key_env}=YOUR_KEY")
        return key
    servers = records.reachable_servers()
    return next((server.key or NO_KEY for server in servers if _same_server(server.url, url)), NO_KEY)


def key_fix(key_env: str | None, key: str) -> str:
    """Return what to do if a server refuses a key."""
    if key_env is not None:
        return f"export {key_env}=YOUR_KEY with a key that this server takes"
    if key != NO_KEY:
        return "the record of the server is stale: start it again with `memlab serve MODEL`"
    return "name the variable that holds the key: chat.key_env=NAME (for the judge judge_chat.key_env=NAME)"


def is_registered(url: str) -> bool:
    """Return whether memlab has started a server with this address, ready or not."""
    return any(_same_server(server.url, url) for server in records.reachable_servers())


def start_fix(url: str, model: str) -> str:
    """Return what to do if no server answers; name a server of the model at another address, or those that run."""
    running = [server for server in records.reachable_servers() if not _same_server(server.url, url)]
    for server in running:
        if server.model == model:
            return f"chat.url={server.url}, where `memlab serve` says that it serves {model}"
    others = ", ".join(f"{server.name} at {server.url}" for server in running)
    return f"start the server (`memlab serve {model}`) or set chat.url" + (
        f"; running (`memlab serve list`): {others}" if others else "")


def _same_server(*urls: str) -> bool:
    return len({url.rstrip("/").replace("//localhost", "//127.0.0.1").removesuffix("/v1") for url in urls}) == 1
