"""Servers of models: their settings, addresses and keys.

Keys come from a variable, or from the private record of ``memlab serve``. They enter no message, no log, no identity.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from memlab.models.serving.servers import reachable_servers
from memlab.pipeline.stage import stage
from memlab.support.errors import MemlabError

AUTO = "auto"
"""The address that stands for a server of the model that ``memlab serve`` started."""

Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable."""


def check_address(url: str) -> str:
    """Return an address; raise ValueError unless it is one of a server: http(s)://HOST[:PORT][/PATH]."""
    import httpx  # a tenth of a second, which the help page does not need

    try:
        parts = httpx.URL(url)
        valid = (parts.scheme in ("http", "https") and bool(parts.host) and " " not in url
                 and 0 < (80 if parts.port is None else parts.port) < 2**16)
    except (httpx.InvalidURL, UnicodeError):
        valid = False
    if not valid:
        raise ValueError("this is not the address of a server. Fix: http://HOST:PORT/v1, or https://...")
    return url


Url = Annotated[str, AfterValidator(check_address)]


@stage
class ServerSettings:
    """The settings of a model that its connections need; only the model can change a result."""

    url: Url
    model: Annotated[str, Field(min_length=1)]
    key_env: Variable | None = None  # variable that holds the key; null: that of `memlab serve`'s record, or none
    timeout: Annotated[float, Field(gt=0)] = 60.0  # seconds without a reply
    # longest wait, in seconds, for a server that is away; 3 s if it has never answered
    patience: Annotated[float, Field(ge=0)] = 60.0
    retries: Annotated[int, Field(ge=0)] = 5  # after 429, 5xx, time-outs and broken replies
    # seconds before the first repeat unless the server asks for others
    first_wait: Annotated[float, Field(gt=0)] = 1.0
    waits: Literal["double", "linear"] = "double"  # each further wait: twice as long, or longer by the first one

    slot: ClassVar[str] = "chat"
    """The slot whose settings messages name."""

    wrong_fix: ClassVar[str] = (
        "leave out what the server does not take: chat.temperature=null, chat.logprobs=false, chat.omit=[seed], or "
        "chat.omit=[max_tokens] (the limit is then sent as max_completion_tokens); else see the server's log")
    """What to do about a request that the server finds wrong."""

    @property
    def name(self) -> str:
        """Display name of the model."""
        return self.model


@dataclass(frozen=True)
class Target:
    """The address of a server and the key that it takes, "" for none."""

    url: str
    key: str


def server_key(settings: ServerSettings) -> str:
    """Return the key for a server, from its variable or the record of ``memlab serve``; "" if there is none."""
    if settings.key_env is None:
        return next((one.key for one in reachable_servers() if _same_server(one.url, settings.url)), "")
    key = os.environ.get(settings.key_env, "").strip()
    if not key or not (key.isascii() and key.isprintable()):
        what = f"the key's variable {settings.key_env} {'holds characters that no key has' if key else 'is empty'}"
        raise MemlabError(what, where=settings.slot, fix=f"export {settings.key_env}=YOUR_KEY")
    return key


def key_fix(settings: ServerSettings, key: str) -> str:
    """Return what to do if a server refuses a key."""
    if settings.key_env is not None:
        return f"export {settings.key_env}=YOUR_KEY with a key that this server takes"
    if key:
        return "the record of the server is stale: start it again with `memlab serve MODEL`"
    judge = " (for the judge judge_chat.key_env=NAME)" if settings.slot == "chat" else ""
    return f"name the variable that holds the key: {settings.slot}.key_env=NAME{judge}"


def is_registered(url: str) -> bool:
    """Return whether memlab has started a server with this address, ready or not."""
    return any(_same_server(server.url, url) for server in reachable_servers())


def start_fix(settings: ServerSettings) -> str:
    """Return what to do if no server answers; name a server of the model at another address, or those that run."""
    running = [server for server in reachable_servers() if not _same_server(server.url, settings.url)]
    for server in running:
        if server.model == settings.model and settings.url != AUTO:
            return f"{settings.slot}.url={server.url}, where `memlab serve` says that it serves {settings.model}"
    others = ", ".join(f"{server.name} at {server.url}" for server in running)
    other_way = (f"on a cluster `sbatch slurm/serve.sbatch {settings.model}`" if settings.url == AUTO
                 else f"set {settings.slot}.url")
    return f"start the server (`memlab serve {settings.model}`) or {other_way}" + (
        f"; running (`memlab serve list`): {others}" if others else "")


def _same_server(*urls: str) -> bool:
    return len({url.rstrip("/").replace("//localhost", "//127.0.0.1").removesuffix("/v1") for url in urls}) == 1
