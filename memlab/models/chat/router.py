"""``chat.url=auto``: one run of prompts spread over all servers of a model that are up.

The records are read again every few seconds, so that a server that comes up later takes part. Each server takes the
next prompt when it has a free place; the prompts of a lost one go to the others.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from memlab.errors import MemlabError
from memlab.models.chat.client import ChatSettings, Client, Fits
from memlab.models.connection import LONGEST_WAIT, ServerUnavailable
from memlab.models.protocols import Completion, Prompt
from memlab.models.server import Emit
from memlab.runtime.paths import shipped_path
from memlab.runtime.progress import clock
from memlab.runtime.terminal import print
from memlab.servers import Server, reachable_servers

LOOK = 5.0
"""Seconds between two looks at the records; a new server takes a minute to load."""

SILENT = 4
"""Looks in a row that a server may miss before it counts as lost: a node without power does not reset connections,
and a busy server may miss a look."""


def chat_servers(model: str, revision: str | None = None) -> list[Server]:
    """List a model's chat servers that this machine reaches; revisions are compared if both sides name one."""
    return [server for server in reachable_servers()
            if server.task == "chat" and model in {server.model, *server.names}
            and (revision is None or server.revision in {None, revision})]


def start_advice(model: str) -> str:
    """Return how to start a server of a model."""
    return f"`memlab serve {model}` on this machine, `sbatch {_script()} {model}` on a cluster"


def _script() -> Path:
    """Return the path of the script that serves a model on a cluster, as short as the current folder allows."""
    name = "slurm/serve.sbatch"
    return Path(name) if Path(name).is_file() else shipped_path(name)


def describe_records(model: str) -> str:
    """Describe the recorded servers of a model, or else those of other models."""
    servers = reachable_servers()
    same = [f"{s.url} on {s.host}{f', SLURM job {s.job},' if s.job else ''} "
            f"{'does not answer' if s.task else 'is starting'}" for s in servers if model in {s.model, *s.names}]
    others = sorted({s.name for s in servers} - {model})
    return "; ".join(same) or (f"there are servers of {', '.join(others)}" if others else "none has been started")


async def route(settings: ChatSettings, revision: str | None, fits: Fits, prompts: Sequence[Prompt],
                order: Iterator[int], emit: Emit[tuple[int, Completion]]) -> None:
    """Emit (position, completion) of every prompt, asked in roughly the given order; raises MemlabError."""
    try:
        async with contextlib.AsyncExitStack() as connections:
            await Router(settings, revision, fits, prompts, order, emit, connections).run()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


@dataclass(eq=False)
class _Server:
    """A server that takes part: its running requests, and the number of looks in a row that it missed."""

    client: Client
    requests: dict[asyncio.Task[None], int] = field(default_factory=dict)
    silent: int = 0


class Router:
    """The servers that are up, and the prompts that each of them answers.

    Every prompt is in one place: waiting, in a running request, or answered.
    A prompt that failed at a server, or was running at a server that was lost, goes to another server, at most
    ``settings.retries`` times.
    """

    def __init__(self, settings: ChatSettings, revision: str | None, fits: Fits, prompts: Sequence[Prompt],
                 order: Iterator[int], emit: Emit[tuple[int, Completion]],
                 connections: contextlib.AsyncExitStack) -> None:
        # a server repeats a request once, after the wait that it asks for; the router makes further attempts
        self._settings = replace(settings, patience=0.0, retries=min(1, settings.retries))
        self._retries, self._patience, self._revision = settings.retries, settings.patience, revision
        self._fits, self._prompts, self._emit, self._connections = fits, prompts, emit, connections
        self._waiting = deque(order)
        self._unanswered = len(self._waiting)
        self._failures: Counter[int] = Counter()
        self._failed_at: dict[int, _Server] = {}
        self._up: dict[str, _Server] = {}
        self._clients: dict[tuple[str, str], Client] = {}
        self._finished, self._all_lost = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        """Return when every prompt is answered; raises MemlabError if no server is up for longer than ``patience``."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            search = group.create_task(self._search())
            await self._finished.wait()
            search.cancel()

    async def _search(self) -> None:
        """Look for servers again and again."""
        last_up, warned, first = time.monotonic(), False, True
        while True:
            await self._look(announce=not first)
            first = False
            if self._up:
                last_up, warned = time.monotonic(), False
            else:
                self._check_patience(time.monotonic() - last_up, warned)
                warned = True
            remaining = last_up + self._patience - time.monotonic()
            self._all_lost.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._all_lost.wait(), LOOK if self._up else max(0.0, min(LOOK, remaining)))

    def _check_patience(self, waited: float, warned: bool) -> None:
        model = self._settings.model
        what, advice = f"no server of {model} is up ({describe_records(model)})", start_advice(model)
        if waited >= self._patience:
            raise MemlabError(f"{what}, and none came in {clock(waited)}", where="chat.url=auto",
                              fix=f"{advice}; then give the same line again: what was answered is stored")
        if not warned:
            print(f"{what}; one is waited for, at most {clock(self._patience)}. Fix: {advice}", file=sys.stderr,
                  flush=True)

    async def _look(self, announce: bool) -> None:
        """Probe every recorded server, and every server that takes part."""
        servers = await asyncio.to_thread(chat_servers, self._settings.model, self._revision)
        new = []
        for record in servers:
            if record.url not in self._up:
                key = record.url, record.key
                if key not in self._clients:
                    client = Client(replace(self._settings, url=record.url), self._fits)
                    self._clients[key] = await self._connections.enter_async_context(client)
                new.append(self._clients[key])
        await asyncio.gather(*(self._greet(client, announce) for client in new),
                             *(self._check_alive(server) for server in list(self._up.values())))

    async def _greet(self, client: Client, announce: bool) -> None:
        """Let a server take part if it serves the model: its record may be stale, and its port another server's."""
        if await client.serves():
            self._up[client.settings.url] = _Server(client)
            self._start_requests()
            if announce:
                print(f"{client.settings.url} takes part, {len(self._up)} in all", file=sys.stderr, flush=True)

    async def _check_alive(self, server: _Server) -> None:
        server.silent = 0 if await server.client.alive() else server.silent + 1
        if server.silent >= SILENT:
            self._lose(server, f"{server.client.where}: no sign of life")

    def _lose(self, server: _Server, reason: str) -> None:
        """Give a lost server's prompts to the others; raises MemlabError if a prompt was lost too often."""
        url = server.client.settings.url
        if self._up.get(url) is not server:
            return
        del self._up[url]
        print(f"a server is lost ({reason}); its {len(server.requests)} requests are asked "
              f"{f'of {len(self._up)} more' if self._up else 'when one is up'}", file=sys.stderr, flush=True)
        for task, position in server.requests.items():
            self._count_failure(position, reason)
            if task is not asyncio.current_task():
                task.cancel()
        self._waiting.extendleft(server.requests.values())
        self._start_requests()
        if not self._up:
            self._all_lost.set()

    def _count_failure(self, position: int, reason: str) -> None:
        self._failures[position] += 1
        if self._failures[position] > self._retries:
            raise MemlabError(f"a prompt has no answer after {self._failures[position]} attempts, last: {reason}",
                              where="chat.url=auto", fix="look into the servers' logs, then give the same line again: "
                                                         "what was answered is stored")

    def _start_requests(self) -> None:
        """Give each free place to the server with the fewest requests."""
        while any(self._start(server) for server in sorted(self._up.values(), key=lambda one: len(one.requests))):
            pass

    def _start(self, server: _Server) -> bool:
        """Start a server's next request; returns whether there was a free place and a prompt for it."""
        if len(server.requests) >= self._settings.concurrency or self._is_full():
            return False
        alone = len(self._up) == 1
        position = next((at for at in self._waiting if alone or self._failed_at.get(at) is not server), None)
        if position is not None:
            self._waiting.remove(position)
            server.requests[self._group.create_task(self._work(server, position))] = position
        return position is not None

    def _is_full(self) -> bool:
        """Return whether as many requests run as all servers together may have."""
        return sum(len(server.requests) for server in self._up.values()) >= (self._settings.in_all or math.inf)

    async def _work(self, server: _Server, position: int) -> None:
        """Ask a server one prompt, then start what may be asked in its place, perhaps at another server."""
        task = asyncio.current_task()
        assert task is not None
        try:
            await self._emit((position, await server.client.ask(self._prompts[position])))
        except ServerUnavailable as error:
            if not error.answers:
                self._lose(server, str(error).partition(". Fix: ")[0])
                return
            await self._ask_elsewhere(server, position, error.what)
        else:
            self._unanswered -= 1
            if not self._unanswered:
                self._finished.set()
        del server.requests[task]
        self._start_requests()

    async def _ask_elsewhere(self, server: _Server, position: int, reason: str) -> None:
        """Let a prompt that failed at a running server wait for another one, if there is one."""
        self._count_failure(position, reason)
        await asyncio.sleep(min(self._settings.first_wait * 2 ** self._failures[position], LONGEST_WAIT))
        self._failed_at[position] = server
        self._waiting.appendleft(position)
