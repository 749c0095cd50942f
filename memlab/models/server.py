"""Servers of models: their settings, and the requests that run in the background.

Keys come from a variable, or from the private record of ``memlab serve``. They enter no message, no log, no identity.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from memlab.errors import MemlabError
from memlab.servers import reachable_servers
from memlab.stage import stage

Item = TypeVar("Item")
Emit = Callable[[Item], Awaitable[None]]

_FULL_WAIT = 0.01  # seconds between looks at a queue whose reader lags behind
_LONGEST_WAIT = 3600.0  # seconds; any limit will do


def _wait_for(ready: queue.SimpleQueue[Item]) -> Item:
    """Return the next item. Importing polars makes Ctrl-C wait for the end of a wait that has no time limit."""
    while True:
        with suppress(queue.Empty):
            return ready.get(timeout=_LONGEST_WAIT)


async def run_workers(worker: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Run ``count`` workers side by side; the first error ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(worker())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def background(work: Callable[[Emit[Item]], Coroutine[Any, Any, None]], queue_size: int) -> Iterator[Item]:
    """Yield the items that ``work(emit)`` emits while it runs; at most about ``queue_size`` items wait to be read.

    An error of the work is raised after the items before it. Leaving the iterator early, also by an interrupt, cancels
    the work and waits for its end.

    >>> async def work(emit):
    ...     for i in range(3):
    ...         await emit(i)
    >>> list(background(work, queue_size=1))
    [0, 1, 2]
    """
    ready: queue.SimpleQueue[list[Item] | BaseException | None] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    batch: list[Item] = []  # emitted in one turn of the loop: waking the reader costs more than reading an item
    emitted = consumed = 0

    def hand_over() -> None:
        ready.put(batch.copy())
        batch.clear()

    async def emit(item: Item) -> None:
        nonlocal emitted
        while emitted - consumed >= queue_size:
            await asyncio.sleep(_FULL_WAIT)
        emitted += 1
        if not batch:
            loop.call_soon(hand_over)
        batch.append(item)

    task = loop.create_task(work(emit))

    def run() -> None:
        error: BaseException | None = None
        try:
            loop.run_until_complete(task)
        except BaseException as problem:  # the reader raises it
            error = problem
        finally:
            with suppress(Exception):
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            hand_over()
            ready.put(error)

    thread = threading.Thread(target=run, name="memlab-background", daemon=True)
    thread.start()
    try:
        while isinstance(items := _wait_for(ready), list):
            for item in items:
                consumed += 1
                yield item
        if items is not None:
            raise items
    finally:
        with suppress(RuntimeError):  # the loop is closed: the work has ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join()


Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable."""


def check_address(url: str) -> str:
    """Return an address; raise ValueError unless it is one of a server: http(s)://HOST[:PORT][/PATH]."""
    import httpx  # a tenth of a second, which the help page does not need

    try:
        parts, _ = urlsplit(url), httpx.URL(url)  # each refuses what the other takes
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except (httpx.InvalidURL, ValueError):  # a port of letters, half a bracket, a name that is too long
        valid = False
    if not valid or not url.isprintable() or " " in url:
        raise ValueError("this is not the address of a server. Fix: http://HOST:PORT/v1, or https://...")
    return url


Url = Annotated[str, AfterValidator(check_address)]


@stage
class ServerSettings:
    """The settings of a model that its connections need; only the model can change a result."""

    url: Url
    model: Annotated[str, Field(min_length=1)]
    key_env: Variable | None = None  # variable that holds the key; null: that of `memlab serve`'s record, or none
    timeout: Annotated[float, Field(gt=0)] = 60.0  # seconds for one whole reply
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
        if server.model == settings.model:
            return f"{settings.slot}.url={server.url}, where `memlab serve` says that it serves {settings.model}"
    others = ", ".join(f"{server.name} at {server.url}" for server in running)
    return f"start the server (`memlab serve {settings.model}`) or set {settings.slot}.url" + (
        f"; running (`memlab serve list`): {others}" if others else "")


def _same_server(*urls: str) -> bool:
    return len({url.rstrip("/").replace("//localhost", "//127.0.0.1").removesuffix("/v1") for url in urls}) == 1
