"""The connection to a model server: one policy of requests for chat models, embedders and rerankers.

A request has a limit on its total time, a reply one on its size. Busy (429, 5xx, time-outs, cut connections, replies
that cannot be read): the request is sent again after a growing, jittered wait, or after the wait that the server asks
for. Away (nobody listens, 502 to 504): all requests wait while one probes whether the server is back. A refused key, an
unknown model, a wrong request, or an address where nothing has ever listened end the run.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Literal, Self, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_incrementing,
    wait_random,
)

from memlab.errors import MemlabError, did_you_mean
from memlab.models.server import ServerSettings, is_registered, key_fix, server_key, start_fix
from memlab.runtime.progress import clock
from memlab.runtime.terminal import print

MOST_BYTES = 100_000_000
"""Bytes of one reply: 100 vectors of 4,096 numbers take some 10 MB as JSON."""

MOST_NAMES = 1000
"""Names of models of a server among which one like that of the settings is looked for."""

MOST_READ = 100_000
"""Bytes of a refusal that are read: a page of a proxy may be long."""

LONGEST_WAIT = 120.0
"""Seconds; a service that asks for a longer wait has run out of quota."""

PROBE_WAIT = 5.0
"""Longest time in seconds between two probes of a server that is away; a new vLLM takes 40 s to start."""

PROBE_TIMEOUT = 5.0
"""Seconds in which a running server answers a probe."""

CONNECT_TIMEOUT = 10.0
"""Seconds in which a running server takes a connection, however busy it is."""

UNREACHABLE_WAIT = 3.0
"""Seconds for which an address is probed if nothing there has answered this process yet."""

_SHOWN = 300  # characters of a server's own message that are shown
_AWAY = (502, 503, 504)

Result = TypeVar("Result")
Refusal = Literal["key", "unknown", "wrong"]
_REFUSALS: dict[int, Refusal] = {401: "key", 403: "key", 404: "unknown"}
_BUSY = (408, 409, 425, 429)


@cache
def answering() -> set[str]:
    """Return the addresses that have answered this process, if only with an error or too late."""
    return set()


class TemporaryFailure(Exception):
    """A failure that may not occur again; ``retry_after`` is the header of that name."""

    def __init__(self, what: str, retry_after: str | None = None) -> None:
        super().__init__(what)
        self.retry_after = retry_after


class ServerUnavailable(MemlabError):
    """The server does not answer at all or, with ``answers``, not this request; another server may."""

    def __init__(self, what: str, *, where: str, fix: str, answers: bool = False) -> None:
        super().__init__(what, where=where, fix=fix)
        self.answers = answers


@dataclass(frozen=True)
class Reply:
    """A server's reply, whatever its status, and the seconds that it took; ``retry_after``, ``location``: headers."""

    status: int
    content: bytes
    retry_after: str | None = None
    seconds: float = 0.0
    location: str = ""

    @property
    def text(self) -> str:
        """The beginning of a refusal."""
        return self.content[:MOST_READ].decode(errors="replace")

    @property
    def error(self) -> dict[str, Any]:
        """The error of a refusal in OpenAI's form; {} for one of another form."""
        try:
            body = json.loads(self.text)
        except (ValueError, RecursionError):
            return {}
        error = body.get("error", body) if isinstance(body, dict) else None
        return error if isinstance(error, dict) else {}

    @property
    def message(self) -> str:
        """What a refusal says."""
        said = self.error.get("message")
        return said if isinstance(said, str) else self.text


class Connection:
    """The connection to one server, shared by all requests to it within one event loop."""

    def __init__(self, settings: ServerSettings) -> None:
        import httpx

        self.settings, self._url = settings, httpx.URL(settings.url)
        self.where = f"{self._url.scheme}://{self._url.netloc.decode()}{self._url.raw_path.decode().partition('?')[0]}"
        self._key = server_key(settings)
        # the environment's proxy leads neither to this machine itself nor to another node
        local = self._url.host in ("127.0.0.1", "localhost", "::1") or is_registered(settings.url)
        # a redirect would take a conversation to another place: none is followed. A packed reply may unpack to any size
        self._client = httpx.AsyncClient(
            headers={"Accept-Encoding": "identity"}, trust_env=not local, limits=httpx.Limits(),
            timeout=httpx.Timeout(settings.timeout, connect=min(settings.timeout, CONNECT_TIMEOUT)),
            verify=httpx.create_ssl_context() if self._url.scheme == "https" else False)  # which takes 50 ms
        self._alive_at = self._pause_until = 0.0
        self._probing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def post(self, path: str, body: dict[str, Any], read: Callable[[Reply], Result]) -> Result:
        """Return ``read(reply)`` of the reply to a request, which raises ValueError for one that it cannot read.

        Raises MemlabError (ServerUnavailable if another server may help), and what ``check_refusal`` raises.
        """
        retries = self.settings.retries
        policy = AsyncRetrying(retry=retry_if_exception_type(TemporaryFailure), stop=stop_after_attempt(retries + 1),
                               wait=self._wait, reraise=True)
        try:
            return await policy(self._attempt, path, body, read)
        except TemporaryFailure as failure:
            last = failure
        raise ServerUnavailable(f"no answer after {retries + 1} attempts, last: {last}", where=self.where, answers=True,
                                fix="look into the server's log and its quota, then give the same line again: what was "
                                    "answered is stored")

    async def serves(self) -> bool:
        """Return whether the server accepts the key and knows the model."""
        return self.settings.model in await self._models()

    async def alive(self) -> bool:
        """Return whether the server answers anything at all; a gateway's 502 to 504 does not count."""
        import httpx

        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                return (await self._exchange("GET", "/models")).status not in _AWAY
        except (httpx.TransportError, TimeoutError):
            return False
        except MemlabError:  # an answer that is too long is an answer
            return True

    def check_refusal(self, reply: Reply) -> None:
        """Raise an exception of the caller's own for a refusal that it can handle; ``post`` lets it pass."""

    def redact(self, message: str) -> str:
        """Return a server's message in one line, without the key and without control characters."""
        if self._key:
            message = message.replace(self._key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in message[:MOST_READ]).split())[:_SHOWN]

    async def _exchange(self, method: str, path: str, body: dict[str, Any] | None = None) -> Reply:
        """Return the reply to one request; raises MemlabError if it is packed, or larger than ``MOST_BYTES``."""
        import httpx

        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        key = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        start, content = time.monotonic(), bytearray()
        try:
            async with self._client.stream(method, url, json=body, headers=key) as reply:
                if reply.headers.get("content-encoding", "identity").lower() != "identity":
                    raise MemlabError("the reply is packed, which was not asked for", where=self.where,
                                      fix="let the server or its proxy send it without Content-Encoding")
                async for piece in reply.aiter_raw():
                    content += piece
                    if len(content) > MOST_BYTES:
                        raise MemlabError(f"the reply has more than {MOST_BYTES / 1e6:g} MB, the limit",
                                          where=self.where, fix="check that the address is a model server, or send "
                                                                "less at once (batch)")
                return Reply(reply.status_code, bytes(content), reply.headers.get("retry-after"),
                             time.monotonic() - start, reply.headers.get("location", ""))
        except httpx.InvalidURL as error:  # of a redirect, which is not followed
            raise MemlabError(f"the server redirects to an address that is none ({self.redact(str(error))})",
                              where=self.where, fix=f"check {self.settings.slot}.url") from None

    async def _attempt(self, path: str, body: dict[str, Any], read: Callable[[Reply], Result]) -> Result:
        import httpx

        await self._wait_turn()
        try:
            async with asyncio.timeout(self.settings.timeout):  # httpx's own limit is for each read
                reply = await self._exchange("POST", path, body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            message = self.redact(f"{type(error).__name__}: {error}")
            if _is_tls(error):
                raise MemlabError(f"no secure connection ({message})", where=self.where,
                                  fix="export SSL_CERT_FILE=FILE with the certificate, if you trust it; or check "
                                      f"{self.settings.slot}.url: http:// for a server without TLS") from None
            await self._wait_until_back(message)
            raise TemporaryFailure(message) from None
        except (TimeoutError, httpx.TimeoutException):
            answering().add(self.where)
            raise TemporaryFailure(f"no whole reply in {self.settings.timeout:g} s") from None
        except httpx.TransportError as error:
            answering().add(self.where)
            raise TemporaryFailure(self.redact(f"{type(error).__name__}: {error}")) from None
        answering().add(self.where)
        if reply.status == 200:
            try:
                return read(reply)
            except ValueError as error:
                raise TemporaryFailure(self.redact(f"the reply {error}")) from None
        if 300 <= reply.status < 400:
            raise MemlabError(f"the server redirects to {self.redact(reply.location) or 'nowhere'} (status "
                              f"{reply.status}), and no redirect is followed", where=self.where,
                              fix=f"{self.settings.slot}.url=ADDRESS of the server that answers, if you trust it")
        self.check_refusal(reply)
        message = self.redact(f"status {reply.status}: {reply.message}")
        kind = _REFUSALS.get(reply.status, "wrong")
        if kind == "key" and self._renew_key():
            return await self._attempt(path, body, read)  # at once, with the new key
        if reply.status < 500 and reply.status not in _BUSY:
            error_class = MemlabError if kind == "wrong" else ServerUnavailable
            raise error_class(f"the {'key' if kind == 'key' else 'request'} is refused ({message})", where=self.where,
                              fix=await self._fix(kind))
        if reply.status in _AWAY:
            await self._wait_until_back(message)
        if pause := min(retry_after_seconds(reply.retry_after), LONGEST_WAIT):  # it is meant for all requests
            self._pause_until = max(self._pause_until, time.monotonic() + pause)
        raise TemporaryFailure(message, reply.retry_after)

    def _wait(self, state: RetryCallState) -> float:
        """Return the seconds before the next attempt: a growing wait plus jitter, or more where the server asks."""
        failure, first = state.outcome.exception() if state.outcome else None, self.settings.first_wait
        longer = (wait_exponential(multiplier=first, max=LONGEST_WAIT) if self.settings.waits == "double"
                  else wait_incrementing(first, first, LONGEST_WAIT))
        growing = (longer + wait_random(0, first))(state)
        return min(max(growing, retry_after_seconds(getattr(failure, "retry_after", None))), LONGEST_WAIT)

    async def _wait_turn(self) -> None:
        """Wait while the server is away or has asked for a pause."""
        if self._probing.locked():
            async with self._probing:
                pass
        while (remaining := self._pause_until - time.monotonic()) > 0:
            await asyncio.sleep(remaining)

    async def _wait_until_back(self, message: str) -> None:
        """Return when the server answers: one request probes, the others wait; raise MemlabError after ``patience``."""
        failed_at = time.monotonic()
        async with self._probing:
            if self._alive_at > failed_at:  # another request has probed meanwhile
                return
            start, pause, announced = time.monotonic(), self.settings.first_wait, False
            expected = self.where in answering() or is_registered(self.settings.url)
            patience = min(self.settings.patience, math.inf if expected else UNREACHABLE_WAIT)
            while not await self.alive():
                waited, fix = time.monotonic() - start, start_fix(self.settings)
                if waited >= patience:
                    away = f"the server has been away for {clock(waited)}" if patience else "the server is away"
                    raise ServerUnavailable(
                        f"{away if expected else 'no server is there'} ({message})", where=self.where,
                        fix=f"{fix}; then give the same line again: what was answered is stored")
                if expected and not announced:
                    print(f"{self.where} does not answer ({message}); it is waited for, at most {clock(patience)}. "
                          f"Fix: {fix}", file=sys.stderr, flush=True)
                    announced = True
                await asyncio.sleep(min(pause, PROBE_WAIT, patience - waited))
                pause *= 2
            self._alive_at = time.monotonic()
            if announced:
                print(f"{self.where} answers again", file=sys.stderr, flush=True)

    async def _fix(self, kind: Refusal) -> str:
        """Return the remedy for a refusal."""
        settings = self.settings
        if kind == "key":
            return key_fix(settings, self._key)
        if kind == "wrong":
            return settings.wrong_fix
        names = await self._models()
        if names and settings.model not in names:
            shown = map(self.redact, names[:MOST_NAMES])
            return f"{settings.slot}.model=NAME; {did_you_mean(settings.model, shown)}"
        return f"check {settings.slot}.url, which mostly ends in /v1, and {settings.slot}.model"

    async def _models(self) -> list[str]:
        """Return the names of the server's models; [] if it names none."""
        import httpx

        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                reply = await self._exchange("GET", "/models")
            return [str(model["id"]) for model in json.loads(reply.content)["data"]] if reply.status == 200 else []
        except (httpx.TransportError, TimeoutError, MemlabError, ValueError, TypeError, LookupError, RecursionError):
            return []

    def _renew_key(self) -> bool:
        """Read the key again, since the server may have been restarted; return whether it changed."""
        old, self._key = self._key, server_key(self.settings)
        return self._key != old


def _is_tls(error: BaseException | None) -> bool:
    """Return whether an error, or one that it came from, is of a secure connection, such as of a certificate."""
    if error is None or isinstance(error, ssl.SSLEOFError | ssl.SSLWantReadError):  # it hangs up, or says nothing
        return False
    return isinstance(error, ssl.SSLError) or _is_tls(error.__cause__ or error.__context__)


def retry_after_seconds(header: str | None) -> float:
    """Return the seconds that a Retry-After header asks for, as a number or a date; 0 for any other header.

    >>> retry_after_seconds("3"), retry_after_seconds("-3"), retry_after_seconds("nan"), retry_after_seconds(None)
    (3.0, 0.0, 0.0, 0.0)
    """
    if not header:
        return 0.0
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds()
        except (ValueError, TypeError, OverflowError):
            return 0.0
    return seconds if seconds > 0 and math.isfinite(seconds) else 0.0
