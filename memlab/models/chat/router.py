"""``chat.url=auto``: one run of prompts spread over all servers of a model that are up.

The records are looked at again every few seconds, so that a server that comes up later takes part. One that is lost
gives its prompts back, and the others ask them: a prompt is given once, by whichever server answered it. A server that
has nothing left to do takes over from the longest queue.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from memlab.errors import MemlabError
from memlab.models.chat import retry
from memlab.models.chat.background import Give
from memlab.models.chat.client import Fits, Settings, Talk
from memlab.models.chat.protocol import Completion, Prompt
from memlab.models.chat.retry import Gone
from memlab.models.http.client import LONGEST_WAIT
from memlab.runtime.progress import clock
from memlab.serving import records

ALIKE = 256
"""Characters, after those that all prompts share, by which a prompt's server is chosen: 4 blocks of a prefix cache."""

_STEP = 64  # what all prompts share ends at another character in the next call; in steps it mostly does not


def published(model: str, revision: str | None = None) -> list[records.Server]:
    """List a model's chat servers that can be reached from here; revisions are compared where both sides name one."""
    return [server for server in records.readable()
            if server.does == "chat" and model in {server.model, *server.names}
            and (revision is None or server.revision in {None, revision})]


def openings(prompts: Sequence[Prompt]) -> list[bytes]:
    """Return a digest of each prompt's beginning, without the system's message and what all the prompts share.

    >>> from memlab.models.chat.protocol import Message
    >>> one, two, three = openings([Prompt((Message("system", "Be brief."), Message("user", text)))
    ...                             for text in ("a" * 300 + "?", "a" * 300 + "!", "b")])
    >>> one == two, one == three
    (True, False)
    """
    said = [next((m.content for m in prompt.messages if m.role != "system"), "") for prompt in prompts]
    first, last = min(said, default=""), max(said, default="")
    shared = len(os.path.commonprefix([first, last])) if first != last else 0
    start = shared - shared % _STEP
    return [_digest(text[start:start + ALIKE]) for text in said]


def choose(opening: bytes, urls: Iterable[str]) -> str:
    """Return the server that prompts of an opening are for.

    >>> urls = ["http://n1:1/v1", "http://n2:1/v1", "http://n3:1/v1"]
    >>> chosen = choose(b"one", urls)
    >>> all(choose(b"one", [url for url in urls if url != lost]) == chosen for lost in urls if lost != chosen)
    True
    """
    return max(urls, key=lambda url: _digest(url, opening))


def advice(model: str) -> str:
    """Say how to start a server of a model."""
    return f"`python -m memlab.serve {model}` on this machine, `sbatch slurm/serve.sbatch {model}` on a cluster"


def seen(model: str) -> str:
    """Describe what the records tell of a model's servers, or else of others'."""
    known = records.readable()
    own = [f"{s.url} on {s.host}{f', SLURM job {s.job},' if s.job else ''} "
           f"{'does not answer' if s.does else 'is starting'}" for s in known if model in {s.model, *s.names}]
    others = sorted({s.name for s in known} - {model})
    return "; ".join(own) or (f"there are servers of {', '.join(others)}" if others else "none has been started")


def _digest(text: str, of: bytes = b"") -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), key=of, digest_size=8).digest()


AUTO = "auto"

LOOK = 5.0
"""Seconds between two looks at the records: a new server takes a minute to load, and is not to wait long."""
SILENT = 4
"""Looks in a row at which a server says nothing until it counts as lost: a node without power resets no connection,
and a busy server may miss a look."""


async def spread(settings: Settings, revision: str | None, fits: Fits, prompts: Sequence[Prompt],
                 order: Iterator[int], give: Give[tuple[int, Completion]]) -> None:
    """Give (position, completion) of every prompt, asked in about the given order; raises MemlabError."""
    fleet = Fleet(settings, revision, fits, prompts, list(order), give)
    try:
        async with asyncio.TaskGroup() as group:
            await fleet.run(group)
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    finally:
        await fleet.close()


@dataclass(eq=False)
class _Server:
    """A server that takes part: what waits for it, what it is asked, and the looks at which it was silent."""

    talk: Talk
    waiting: deque[int] = field(default_factory=deque)
    asked: dict[asyncio.Task[None], int] = field(default_factory=dict)
    silent: int = 0

    @property
    def url(self) -> str:
        return self.talk.settings.url


class Fleet:
    """The servers that are up, and who answers what.

    Every prompt is in one place: left over while no server is up, waiting for a server, asked of one, or given. One
    that failed at a server which answers otherwise is asked of another, and one that was asked of a server that was
    lost too, each ``settings.retries`` times.
    """

    def __init__(self, settings: Settings, revision: str | None, fits: Fits, prompts: Sequence[Prompt],
                 order: Sequence[int], give: Give[tuple[int, Completion]]) -> None:
        # one repeat at the same server, after the wait that it asks for; further ones are dealt out here
        self._settings = replace(settings, patience=0.0, retries=min(1, settings.retries))
        self._retries, self._patience, self._revision = settings.retries, settings.patience, revision
        self._fits, self._prompts, self._give = fits, prompts, give
        self._rank = {at: rank for rank, at in enumerate(order)}
        self._openings = dict(zip(order, openings([prompts[at] for at in order])))
        self._left_over, self._missing = list(order), len(order)
        self._failed: Counter[int] = Counter()
        self._failed_at: dict[int, _Server] = {}
        self._up: dict[str, _Server] = {}
        self._talks: dict[tuple[str, str], Talk] = {}
        self._stir, self._late = asyncio.Event(), False

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Look for servers until every prompt is given; raises MemlabError when none is up for longer than patience."""
        self._group, alone, told = group, time.monotonic(), False
        while self._missing:
            look = group.create_task(self._look())
            while self._missing and not look.done():
                await self._until(look)
            self._late = True
            if self._up:
                alone, told = time.monotonic(), False
            elif self._missing:
                self._check_patience(time.monotonic() - alone, told)
                told = True
            left = alone + self._patience - time.monotonic()
            pause = group.create_task(asyncio.sleep(LOOK if self._up else max(0.0, min(LOOK, left))))
            if self._missing:
                await self._until(pause)
            for task in (look, pause):
                task.cancel()

    async def close(self) -> None:
        """Cut all connections."""
        for talk in self._talks.values():
            await talk.close()

    async def _until(self, task: asyncio.Task[None]) -> None:
        """Return when a task is done, or something has happened that cannot wait for it."""
        stirred = asyncio.ensure_future(self._stir.wait())
        try:
            await asyncio.wait({task, stirred}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stirred.cancel()
            self._stir.clear()

    def _check_patience(self, waited: float, told: bool) -> None:
        model = self._settings.model
        if waited >= self._patience:
            raise MemlabError(f"no server of {model} is up ({seen(model)}), and none came in {clock(waited)}",
                              where="chat.url=auto",
                              fix=f"{advice(model)}; then give the same line again: what was answered is stored")
        if not told:
            print(f"no server of {model} is up ({seen(model)}); one is waited for, at most {clock(self._patience)}. "
                  f"Fix: {advice(model)}", file=sys.stderr, flush=True)

    async def _look(self) -> None:
        """Ask every published server, and every one that takes part, for a sign of life."""
        known = await asyncio.to_thread(published, self._settings.model, self._revision)
        new = []
        for record in known:
            if record.url not in self._up:
                place = record.url, record.key
                if place not in self._talks:
                    self._talks[place] = Talk(replace(self._settings, url=record.url), self._fits)
                new.append(self._talks[place])
        await asyncio.gather(*map(self._greet, new), *map(self._watch, list(self._up.values())))

    async def _greet(self, talk: Talk) -> None:
        """Let a server take part if it is one: a record may outlive its server, and another may have its port."""
        if await talk.serves() and self._missing:
            server = self._up[talk.settings.url] = _Server(talk)
            self._deal(())
            if self._late:
                print(f"{server.url} takes part, {len(self._up)} in all", file=sys.stderr, flush=True)

    async def _watch(self, server: _Server) -> None:
        server.silent = 0 if await server.talk.alive() else server.silent + 1
        if server.silent >= SILENT:
            self._lose(server, f"{server.talk.where}: no sign of life")

    def _lose(self, server: _Server, said: str) -> None:
        """Deal out to the others what a server had; raises MemlabError where a prompt was lost with too many."""
        if self._up.get(server.url) is not server:
            return
        del self._up[server.url]
        print(f"a server is lost ({said}); its {len(server.asked)} requests are asked "
              f"{f'of {len(self._up)} more' if self._up else 'when one is up'}", file=sys.stderr, flush=True)
        for task, at in server.asked.items():
            self._count_failure(at, said)
            if task is not asyncio.current_task():
                task.cancel()
        self._deal([*server.asked.values(), *server.waiting])
        if not self._up:
            self._stir.set()

    def _count_failure(self, at: int, said: str) -> None:
        self._failed[at] += 1
        if self._failed[at] > self._retries:
            raise MemlabError(f"a prompt has no answer after {self._failed[at]} attempts, last: {said}",
                              where="chat.url=auto",
                              fix="look into the servers' logs, then give the same line again: what was answered is "
                                  "stored")

    def _deal(self, positions: Iterable[int]) -> None:
        """Deal out some prompts, and anew what waits, in order; have the servers asked as much as they may be."""
        waiting = sorted([*positions, *self._left_over, *(at for one in self._up.values() for at in one.waiting)],
                         key=self._rank.__getitem__)
        if not self._up:
            self._left_over = waiting
            return
        self._left_over = []
        for server in self._up.values():
            server.waiting.clear()
        chosen: dict[bytes, _Server] = {}
        for at in waiting:
            opening = self._openings[at]
            if opening not in chosen:
                chosen[opening] = self._up[choose(opening, self._up)]
            chosen[opening].waiting.append(at)
        self._feed()

    def _feed(self) -> None:
        """Have every server asked as much as it may be: first from its own queue, so that none is robbed in time."""
        for rob in (False, True):
            for server in self._up.values():
                while len(server.asked) < self._settings.concurrency and (at := self._next(server, rob)) is not None:
                    server.asked[self._group.create_task(self._work(server))] = at

    def _next(self, server: _Server, rob: bool = True) -> int | None:
        """Take the next prompt for a server: its own, or the last of the longest queue unless it failed at it."""
        if server.waiting:
            return server.waiting.popleft()
        longest = max(self._up.values(), key=lambda one: len(one.waiting))
        if not rob or not longest.waiting or self._failed_at.get(longest.waiting[-1]) is server:
            return None
        return longest.waiting.pop()

    async def _work(self, server: _Server) -> None:
        """Ask a server one prompt after another; when it is lost, this ends, and what it asked is dealt out anew."""
        task = asyncio.current_task()
        assert task is not None
        while True:
            at = server.asked[task]
            try:
                await self._give((at, await server.talk.ask(self._prompts[at])))
                self._missing -= 1
            except Gone as gone:
                if not gone.answers:
                    self._lose(server, str(gone).partition(". Fix: ")[0])
                    return
                await self._ask_elsewhere(server, at, gone)
            if not self._missing:
                self._stir.set()
            following = self._next(server)
            if following is None:
                del server.asked[task]
                return
            server.asked[task] = following

    async def _ask_elsewhere(self, server: _Server, at: int, gone: Gone) -> None:
        """Queue a prompt that failed at a server that answers otherwise first at another, if there is one."""
        self._count_failure(at, gone.what)
        await asyncio.sleep(min(retry.FIRST_WAIT * 2 ** self._failed[at], LONGEST_WAIT))
        others = [one for one in self._up.values() if one is not server]
        self._failed_at[at] = server
        min(others or [server], key=lambda one: len(one.waiting)).waiting.appendleft(at)
        self._feed()
