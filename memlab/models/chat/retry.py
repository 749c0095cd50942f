"""Retries against one chat server: what is sent again, what is waited for, and what ends the run.

Busy (429, 5xx, broken replies): that request is sent again, after a growing, jittered wait or as long as the server
asks for. Away (no connection, time-outs, 502 to 504): all requests wait while one asks whether the server is back. A
refused key, an unknown model, a wrong request, or an address where nothing has ever listened end the run at once.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from tenacity import AsyncRetrying

from memlab.errors import MemlabError
from memlab.models.http.backoff import LONGEST_WAIT, TemporaryFailure, asked_wait, retry_options
from memlab.runtime.progress import clock

FIRST_WAIT = 0.5
"""Seconds before the first repeat."""

PROBE_WAIT = 5.0
"""Longest seconds between two probes of a server that is away: a new vLLM takes 40 s, and should not wait long."""

UNREACHABLE_WAIT = 3.0
"""Seconds that an address is tried at which nothing listens and nothing ever has since this process began."""

_answered: set[str] = set()  # addresses that have answered this process, be it with an error or too late
_AWAY = frozenset({502, 503, 504})
_AGAIN = frozenset({408, 409, 425, 429})
_LONG = re.compile(r"context.(length|window)|maximum model length|max_model_len|(prompt|input).{0,40}too long|"
                   r"reduce the length", re.IGNORECASE)
_SCHEMA = re.compile(r"response_?format|json_?schema|guided|structured.?output|grammar", re.IGNORECASE)

ErrorKind = Literal["unreachable", "away", "busy", "key", "unknown", "wrong"]
Reply = TypeVar("Reply")


class TooLong(Exception):
    """The server says that the prompt does not fit into its window."""


class NoSchema(Exception):
    """The server cannot bind a reply to this schema."""


class ServerUnavailable(MemlabError):
    """This server does not answer, or not this request (``answers``); another one may."""

    def __init__(self, what: str, *, where: str, fix: str, answers: bool = False) -> None:
        super().__init__(what, where=where, fix=fix)
        self.answers = answers


class Malformed(Exception):
    """The server answered 200 with something that is no chat completion."""


@dataclass(frozen=True)
class Failure:
    """One failed request; ``message`` may hold the server's own words, and ``retry_after`` its header."""

    kind: ErrorKind
    message: str
    retry_after: str | None = None


def classify(error: Exception) -> Failure:
    """Return the failure that a client's error stands for; raises TooLong, NoSchema, or an error of another kind."""
    import openai

    if isinstance(error, openai.APIStatusError):
        return _refusal(error.status_code, str(error.message), error.response.headers.get("retry-after"))
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Failure("away", "no reply in time")
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__ or error
        name = type(cause).__name__  # of httpx or of its successor: both name it so where there is no connection at all
        return Failure("unreachable" if name == "ConnectError" else "away", f"{name}: {cause}")
    if isinstance(error, Malformed | ValueError | openai.APIError):  # a ValueError: the body is no JSON
        return Failure("busy", f"the reply is no chat completion ({error})")
    raise error


def _refusal(status: int, message: str, retry_after: str | None) -> Failure:
    if status in (400, 413, 422):
        if _LONG.search(message) or status == 413:
            raise TooLong(message)
        if _SCHEMA.search(message):
            raise NoSchema(message)
    kind: ErrorKind = "busy" if status in _AGAIN or status >= 500 else "wrong"
    if status in (401, 403):
        kind = "key"
    elif status == 404:
        kind = "unknown"
    elif status in _AWAY:
        kind = "away"
    return Failure(kind, f"status {status}: {message}", retry_after)


class Connection(ABC):
    """The connection to one server, shared by all requests to it within one event loop.

    Args:
        where: The server's address, for messages.
        retries: Repeats of one request.
        patience: Longest seconds to wait for a server that is away.
    """

    def __init__(self, where: str, *, retries: int, patience: float) -> None:
        self.where, self._retries, self._patience = where, retries, patience
        self._probing, self._alive_at, self._pause_until = asyncio.Lock(), 0.0, 0.0

    @abstractmethod
    async def alive(self) -> bool:
        """Return whether the server answers anything at all."""

    @abstractmethod
    def starting(self) -> bool:
        """Return whether a server is known to be on its way at this address."""

    @abstractmethod
    def renew_key(self) -> bool:
        """Take the server's new key; return whether there is one."""

    @abstractmethod
    def redact(self, message: str) -> str:
        """Return a server's own words for a message, without the key."""

    @abstractmethod
    async def fix(self, kind: ErrorKind) -> str:
        """Return the remedy for a failure."""

    async def call(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        """Return the reply; raises MemlabError (ServerUnavailable where another may help), TooLong or NoSchema."""
        try:
            return await AsyncRetrying(**retry_options(self._retries, FIRST_WAIT))(self._attempt, send)
        except TemporaryFailure as last:
            message = f"no answer after {self._retries + 1} attempts, last: {last}"
        raise ServerUnavailable(message, where=self.where, answers=True, fix="look into the server's log, then give "
                                "the same line again: what was answered is stored")

    async def _attempt(self, send: Callable[[], Awaitable[Reply]]) -> Reply:
        await self._wait_turn()
        try:
            reply = await send()
            _answered.add(self.where)
            return reply
        except Exception as error:
            failure, failed_at = classify(error), time.monotonic()
        if failure.kind != "unreachable":
            _answered.add(self.where)
        message = self.redact(failure.message)
        if failure.kind == "key" and self.renew_key():
            raise TemporaryFailure(message, "0")  # at once, with the new key
        if failure.kind in ("key", "unknown", "wrong"):
            raise await self._refused(failure.kind, message)
        if failure.kind in ("away", "unreachable"):
            await self._until_back(failed_at, message)
        if pause := min(asked_wait(failure.retry_after, 0.0), LONGEST_WAIT):  # a server that names a time means all
            self._pause_until = max(self._pause_until, time.monotonic() + pause)
        raise TemporaryFailure(message, failure.retry_after)

    async def _refused(self, kind: ErrorKind, message: str) -> MemlabError:
        what = f"the {'key' if kind == 'key' else 'request'} is refused ({message})"
        error = MemlabError if kind == "wrong" else ServerUnavailable
        return error(what, where=self.where, fix=await self.fix(kind))

    async def _wait_turn(self) -> None:
        """Wait while the server is away, or has asked for a pause."""
        if self._probing.locked():
            async with self._probing:
                pass
        while (left := self._pause_until - time.monotonic()) > 0:
            await asyncio.sleep(left)

    async def _until_back(self, failed_at: float, message: str) -> None:
        """Return when the server lives: one request probes, the others wait; raises MemlabError when patience ends."""
        async with self._probing:
            if self._alive_at > failed_at:  # another request has probed meanwhile
                return
            start, pause = time.monotonic(), FIRST_WAIT
            known = self.where in _answered or self.starting()
            patience = self._patience if known else min(self._patience, UNREACHABLE_WAIT)
            while not await self.alive():
                waited, fix = time.monotonic() - start, await self.fix("away")
                if waited >= patience:
                    away = f"the server has been away for {clock(waited)}" if patience else "the server is away"
                    raise ServerUnavailable(
                        f"{away if known else 'no server is there'} ({message})", where=self.where,
                        fix=f"{fix}; then give the same line again: what was answered is stored")
                if known and pause == FIRST_WAIT:
                    print(f"{self.where} does not answer ({message}); it is waited for, at most {clock(patience)}. "
                          f"Fix: {fix}", file=sys.stderr, flush=True)
                await asyncio.sleep(min(pause, patience - waited))
                pause = min(2 * pause, max(PROBE_WAIT, FIRST_WAIT))
            self._alive_at = time.monotonic()
            if known and pause != FIRST_WAIT:
                print(f"{self.where} answers again", file=sys.stderr, flush=True)
