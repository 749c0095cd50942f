"""One chat server and many askers: what is tried again, what is waited for, and what ends the run.

Busy (429, 5xx, time-outs, broken replies): that request is sent again, after a growing, jittered wait or as long as
the server says. Away (no connection, 502 to 504): all wait while one asks whether the server is back. A refused key, an
unknown model, a wrong request, or an address where nothing has ever listened end the run at once.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from memlab.errors import MemlabError
from memlab.models.http.client import LONGEST_WAIT, asked_wait
from memlab.runtime.progress import clock

FIRST_WAIT = 0.5
"""Seconds before the first repeat; each further wait is twice as long, and up to half as long again by chance."""
PROBE_WAIT = 5.0
"""Most seconds between two questions whether a server is back: a new vLLM takes 40 s, and is not to wait long."""

NOBODY = 3.0
"""Seconds that an address is tried at which nothing listens and nothing ever has since this process began."""

_answered: set[str] = set()  # addresses that have answered this process, be it with an error or too late
_AWAY = frozenset({502, 503, 504})
_AGAIN = frozenset({408, 409, 425, 429})
_LONG = re.compile(r"context.(length|window)|maximum model length|max_model_len|(prompt|input).{0,40}too long|"
                   r"reduce the length", re.IGNORECASE)
_SCHEMA = re.compile(r"response_?format|json_?schema|guided|structured.?output|grammar", re.IGNORECASE)

Reply = TypeVar("Reply")


class TooLong(Exception):
    """The server says that the prompt does not fit into its window."""


class NoSchema(Exception):
    """The server cannot bind a reply to this schema."""


class Gone(MemlabError):
    """This server cannot be had, or not for this request (``answers``); another one may."""

    def __init__(self, what: str, *, where: str, fix: str, answers: bool = False) -> None:
        super().__init__(what, where=where, fix=fix)
        self.answers = answers


class Malformed(Exception):
    """The server answered 200 with something that is no chat completion."""


@dataclass(frozen=True)
class Trouble:
    """What went wrong with one request, in words that hold no key."""

    kind: Literal["nobody", "away", "busy", "key", "unknown", "wrong"]
    said: str
    wait: str | None = None


def trouble(error: Exception) -> Trouble:
    """Sort an error of the client; raises TooLong or NoSchema where that is it, and what is no trouble as it is."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _refusal(error.status_code, str(error.message), error.response.headers.get("retry-after"))
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Trouble("away", "no reply in time")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        name = type(cause).__name__  # of httpx or of its successor: both say so where there is no connection at all
        return Trouble("nobody" if name == "ConnectError" else "away", f"{name}: {cause}")
    if isinstance(error, Malformed | ValueError | openai.APIError):  # a ValueError: the body is no JSON
        return Trouble("busy", f"the reply is no chat completion ({error})")
    raise error


def _refusal(status: int, said: str, wait: str | None) -> Trouble:
    if status in (400, 413, 422):
        if _LONG.search(said) or status == 413:
            raise TooLong(said)
        if _SCHEMA.search(said):
            raise NoSchema(said)
    text = f"status {status}: {said}"
    if status in (401, 403):
        return Trouble("key", text)
    if status == 404:
        return Trouble("unknown", text)
    if status in _AWAY:
        return Trouble("away", text, wait)
    return Trouble("busy" if status in _AGAIN or status >= 500 else "wrong", text, wait)


@dataclass(frozen=True)
class Words:
    """How a server's troubles are told: where, its own words without the key, and what helps in each case.

    ``starting`` says whether a server there is known to be on its way.
    """

    where: str
    redact: Callable[[str], str]
    start: Callable[[], str]
    key: Callable[[], str]
    model: Callable[[], Awaitable[str]]
    starting: Callable[[], bool]


class Line:
    """The way to one server, shared by all that ask it, within one event loop.

    Args:
        alive: Asks the server for a sign of life.
        renew: Looks whether there is a new key, and takes it; False if there is none.
        words: For messages.
        retries: Repeats of one request.
        patience: Seconds that a server which is away is waited for.
        seed: Of the jitter.
    """

    def __init__(self, alive: Callable[[], Awaitable[bool]], renew: Callable[[], bool], words: Words, *,
                 retries: int, patience: float, seed: int) -> None:
        self._alive, self._renew, self._words = alive, renew, words
        self._retries, self._patience = retries, patience
        self._chance = np.random.default_rng(seed)
        self._asking, self._seen, self._pause = asyncio.Lock(), 0.0, 0.0

    async def call(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """Return the reply; raises MemlabError (Gone where another server may help), TooLong or NoSchema."""
        said = ""
        for attempt in range(self._retries + 1):
            await self._turn()
            try:
                reply = await send()
                _answered.add(self._words.where)
                return reply
            except Exception as error:
                found, failed = trouble(error), time.monotonic()
            if found.kind != "nobody":
                _answered.add(self._words.where)
            said = self._words.redact(found.said)
            if found.kind == "key" and self._renew():
                continue
            if found.kind in ("key", "unknown", "wrong"):
                raise await self._hopeless(found, said)
            if found.kind in ("away", "nobody"):
                await self._until_back(failed, said)
            if attempt < self._retries:
                await self._back_off(attempt, found.wait)
        raise Gone(f"no answer after {self._retries + 1} attempts, last: {said}", where=self._words.where, answers=True,
                   fix="look into the server's log, then give the same line again: what was answered is stored")

    async def _hopeless(self, found: Trouble, said: str) -> MemlabError:
        if found.kind == "key":
            return Gone(f"the key is refused ({said})", where=self._words.where, fix=self._words.key())
        if found.kind == "unknown":
            return Gone(f"the request is refused ({said})", where=self._words.where, fix=await self._words.model())
        return MemlabError(f"the request is refused ({said})", where=self._words.where,
                           fix="check the chat's settings, and the server's log")

    async def _turn(self) -> None:
        """Wait while the server is away, or has asked for a pause."""
        if self._asking.locked():
            async with self._asking:
                pass
        while (left := self._pause - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def _back_off(self, attempt: int, asked: str | None) -> None:
        if told := min(asked_wait(asked, 0.0), LONGEST_WAIT):  # a server that names a time means everybody
            self._pause = max(self._pause, time.monotonic() + told)
        wait = min(FIRST_WAIT * 2**attempt, LONGEST_WAIT)
        await asyncio.sleep(wait * (1 + 0.5 * float(self._chance.random())))

    async def _until_back(self, failed: float, said: str) -> None:
        """Return when the server lives: one asks, the others wait; raises MemlabError when patience ends."""
        async with self._asking:
            if self._seen > failed:  # somebody else has asked meanwhile
                return
            start, pause = time.monotonic(), FIRST_WAIT
            known = self._words.where in _answered or self._words.starting()
            patience = self._patience if known else min(self._patience, NOBODY)
            while not await self._alive():
                waited = time.monotonic() - start
                if waited >= patience:
                    away = f"the server has been away for {clock(waited)}" if patience else "the server is away"
                    what = away if known else "no server is there"
                    raise Gone(
                        f"{what} ({said})", where=self._words.where,
                        fix=f"{self._words.start()}; then give the same line again: what was answered is stored")
                if known and pause == FIRST_WAIT:
                    print(f"{self._words.where} does not answer ({said}); it is waited for, at most "
                          f"{clock(patience)}. Fix: {self._words.start()}", file=sys.stderr, flush=True)
                await asyncio.sleep(min(pause, patience - waited))
                pause = min(2 * pause, max(PROBE_WAIT, FIRST_WAIT))
            self._seen = time.monotonic()
            if known and pause != FIRST_WAIT:
                print(f"{self._words.where} answers again", file=sys.stderr, flush=True)
