"""The connection to a model server: one policy of requests for chat models, embedders and rerankers.

Busy (429, 5xx, time-outs, cut connections, replies that cannot be read): the request is sent again after a growing,
jittered wait, or after the wait that the server asks for. Away (nobody listens, 502, 503): it is sent again until the
patience of the settings is over. A refused key, an unknown model, a wrong request, or an address where nothing has ever
listened end the run.
"""

from __future__ import annotations

import re
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import tenacity

from memlab.models.server import AUTO, ServerSettings, Target, is_registered, key_fix, server_key, start_fix
from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.progress import clock
from memlab.support.terminal import print

if TYPE_CHECKING:
    import httpx

LONGEST_WAIT = 120.0
"""Seconds; a service that asks for a longer wait has run out of quota."""

AWAY_WAIT = 5.0
"""Longest time in seconds between two requests to a server that is away; a new vLLM takes 40 s to start."""

CONNECT_TIMEOUT = 10.0
"""Seconds in which a running server takes a connection, however busy it is."""

UNREACHABLE_WAIT = 3.0
"""Seconds of patience with an address where nothing has answered this process yet."""

_NO_LIMIT = 3600.0  # seconds: importing polars makes Ctrl-C wait for the end of a wait that has no time limit
_READ, _SHOWN = 10_000, 300  # characters of a server's own message that are read, and shown
_AWAY, _BUSY = (502, 503), (408, 409, 425, 429)
_TLS = re.compile("CERTIFICATE|WRONG_VERSION|record layer", re.IGNORECASE)  # not a server that hangs up

Job = TypeVar("Job")
Result = TypeVar("Result")


class Busy(Exception):
    """A failure that may not occur again; ``retry_after`` is the header of that name."""

    def __init__(self, what: str, retry_after: str | None = None) -> None:
        super().__init__(what)
        self.retry_after = retry_after


class Away(Exception):
    """No server answers."""


class RequestRefused(MemlabError):
    """The server finds a request wrong; ``reply`` says why."""

    def __init__(self, reply: httpx.Response, what: str, *, where: str, fix: str) -> None:
        super().__init__(what, where=where, fix=fix)
        self.reply = reply


class Connection:
    """The connection to one server, for requests from several threads."""

    answered: ClassVar[set[str]] = set()
    """The addresses that have answered this process, if only with an error or too late."""

    def __init__(self, settings: ServerSettings) -> None:
        import httpx

        self.settings = settings
        url, self._closed = httpx.URL(settings.url), threading.Event()
        # the environment's proxy leads neither to this machine itself nor to another node
        local = url.host in ("", "127.0.0.1", "localhost", "::1") or is_registered(settings.url)
        # a redirect would take a conversation to another place: httpx follows none
        self._client = httpx.Client(
            trust_env=not local, limits=httpx.Limits(),
            timeout=httpx.Timeout(settings.timeout, connect=min(settings.timeout, CONNECT_TIMEOUT)),
            verify=httpx.create_ssl_context() if url.scheme == "https" else False)  # which takes 50 ms
        self._target: Target | None = None if settings.url == AUTO else self.find_server()
        self._lock, self._announced = threading.Lock(), False
        self._sockets: list[socket.socket] = []
        pause = tenacity.sleep_using_event(self._closed)
        ends = tenacity.stop_any(tenacity.stop_after_attempt(settings.retries + 1),
                                 tenacity.stop_when_event_set(self._closed))
        self._while_busy = tenacity.Retrying(retry=tenacity.retry_if_exception_type(Busy), wait=self._wait,
                                             sleep=pause, reraise=True, stop=ends)
        doubling = tenacity.wait_exponential(multiplier=settings.first_wait, max=AWAY_WAIT)
        self._while_away = tenacity.Retrying(retry=tenacity.retry_if_exception_type(Away), sleep=pause, reraise=True,
                                             wait=doubling, stop=self._patience_is_over, before_sleep=self._announce)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    @property
    def where(self) -> str:
        """The server's address as it is shown: without password and query."""
        import httpx

        if self._target is None:
            return f"{self.settings.slot}.url={self.settings.url}"
        url = httpx.URL(self._target.url)
        return f"{url.scheme}://{url.netloc.decode()}{url.path}"

    def find_server(self) -> Target | None:
        """Return the server's address and key; None if no server is up. Raises MemlabError for an unusable key."""
        return Target(self.settings.url, server_key(self.settings))

    def ask_all(self, jobs: Iterable[Job], ask: Callable[[Job], Result], at_once: int) -> Iterator[tuple[Job, Result]]:
        """Yield (job, ``ask(job)``) as answers come in, so many requests at a time; raise the first error.

        Leaving the iterator early, also by an interrupt, ends the requests under way.
        """
        waiting, running = iter(jobs), dict[Future[Result], Job]()
        pool = ThreadPoolExecutor(at_once)
        try:
            while True:
                for job in islice(waiting, 2 * at_once - len(running)):  # twice: the reader may lag behind
                    running[pool.submit(ask, job)] = job
                if not running:
                    return
                finished, _ = wait(running, _NO_LIMIT, FIRST_COMPLETED)
                in_order = [one for one in running if one in finished]
                for future in sorted(in_order, key=lambda one: one.exception() is not None):  # answers before an error
                    yield running.pop(future), future.result()
        finally:
            self._closed.set()
            for each in self._sockets:
                _hang_up(each)
            pool.shutdown(cancel_futures=True)

    def post(self, path: str, body: dict[str, Any], read: Callable[[httpx.Response], Result]) -> Result:
        """Return ``read(reply)`` of the reply to a request, which raises ValueError for one that it cannot read.

        Raises MemlabError; RequestRefused if the server finds the request wrong.
        """
        again = "then give the same line again: what was answered is stored"
        try:
            result: Result = self._while_busy(self._while_away, self._attempt, path, body, read)
        except Busy as failure:
            raise MemlabError(f"no answer after {self.settings.retries + 1} attempts, last: {failure}",
                              where=self.where, fix=f"look into the server's log and its quota, {again}") from None
        except Away as failure:
            away = (f"the server has been away for {clock(self._patience())}" if self._is_expected()
                    else "no server is there")
            raise MemlabError(f"{away} ({failure})", where=self.where,
                              fix=f"{start_fix(self.settings)}; {again}") from None
        return result

    def redact(self, message: str) -> str:
        """Return the beginning of a server's message in one line, without the key."""
        if self._target and self._target.key:
            message = message.replace(self._target.key, "***")
        return " ".join(message[:_READ].split())[:_SHOWN]

    def _send(self, method: str, target: Target, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        import httpx

        url = httpx.URL(target.url)
        return self._client.request(method, url.copy_with(path=url.path.rstrip("/") + path), json=body,
                                    headers={"Authorization": f"Bearer {target.key}"} if target.key else {},
                                    extensions={"trace": self._note_socket})

    def _attempt(self, path: str, body: dict[str, Any], read: Callable[[httpx.Response], Result]) -> Result:
        import httpx

        with self._lock:
            self._target = target = self._target or self.find_server()
        if target is None:
            raise Away(f"no server of {self.settings.model} is up")
        try:
            reply = self._send("POST", target, path, body)
        except (httpx.ConnectError, httpx.ConnectTimeout) as error:
            message = self.redact(f"{type(error).__name__}: {error}")
            if _TLS.search(message):
                raise MemlabError(f"no secure connection ({message})", where=self.where,
                                  fix="export SSL_CERT_FILE=FILE with the certificate, if you trust it; or check "
                                      f"{self.settings.slot}.url: http:// for a server without TLS") from None
            if self.settings.url == AUTO:
                self._target = None  # perhaps there is another one
            raise Away(message) from None
        except httpx.TimeoutException:
            self.answered.add(self.where)
            raise Busy(f"no reply in {self.settings.timeout:g} s") from None
        except httpx.HTTPError as error:
            self.answered.add(self.where)
            raise Busy(self.redact(f"{type(error).__name__}: {error}")) from None
        self.answered.add(self.where)
        if reply.status_code != 200:
            raise self._failure(reply, target)
        if self._announced:
            self._announced = False
            print(f"{self.where} answers again", file=sys.stderr, flush=True)
        try:
            return read(reply)
        except ValueError as error:
            raise Busy(self.redact(f"the reply {error}")) from None

    def _failure(self, reply: httpx.Response, target: Target) -> Exception:
        """Return the exception for a reply that is no answer."""
        settings, status = self.settings, reply.status_code
        message = self.redact(f"status {status}: {error_fields(reply).get('message') or reply.text}")
        if 300 <= status < 400:
            where_to = self.redact(reply.headers.get("location", "")) or "nowhere"
            return MemlabError(f"the server redirects to {where_to} (status {status}), and no redirect is followed",
                               where=self.where,
                               fix=f"{settings.slot}.url=ADDRESS of the server that answers, if you trust it")
        if status in _AWAY:
            return Away(message)
        if status >= 500 or status in _BUSY:
            return Busy(message, reply.headers.get("retry-after"))
        if status in (401, 403):
            if (renewed := self.find_server()) != target:  # the server was started again
                self._target = renewed
                return Busy(message)
            return MemlabError(f"the key is refused ({message})", where=self.where, fix=key_fix(settings, target.key))
        refused = f"the request is refused ({message})"
        if status == 404:
            return MemlabError(refused, where=self.where, fix=self._unknown_fix(target))
        return RequestRefused(reply, refused, where=self.where, fix=settings.wrong_fix)

    def _unknown_fix(self, target: Target) -> str:
        """Return the remedy for an unknown model or address, with the names of the server's models if it has some."""
        import httpx

        slot, names = self.settings.slot, list[str]()
        with suppress(httpx.HTTPError, ValueError, TypeError, LookupError):
            names = [self.redact(str(model["id"])) for model in self._send("GET", target, "/models").json()["data"]]
        if names and self.settings.model not in names:
            return f"{slot}.model=NAME; {did_you_mean(self.settings.model, names)}"
        return f"check {slot}.url, which mostly ends in /v1, and {slot}.model"

    def _wait(self, state: tenacity.RetryCallState) -> float:
        """Return the seconds before the next attempt: a growing wait plus jitter, or more where the server asks."""
        failure, first = state.outcome.exception() if state.outcome else None, self.settings.first_wait
        longer = (tenacity.wait_exponential(multiplier=first, max=LONGEST_WAIT) if self.settings.waits == "double"
                  else tenacity.wait_incrementing(first, first, LONGEST_WAIT))
        growing = (longer + tenacity.wait_random(0, first))(state)
        return min(max(growing, retry_after_seconds(getattr(failure, "retry_after", None))), LONGEST_WAIT)

    def _is_expected(self) -> bool:
        """Return whether a server that is away may be expected to come back."""
        return self.settings.url == AUTO or self.where in self.answered or is_registered(self.settings.url)

    def _patience(self) -> float:
        patience = self.settings.patience
        return patience if self._is_expected() else min(patience, UNREACHABLE_WAIT)

    def _patience_is_over(self, state: tenacity.RetryCallState) -> bool:
        return self._closed.is_set() or state.idle_for >= self._patience()

    def _announce(self, state: tenacity.RetryCallState) -> None:
        """Say once that a server is away."""
        with self._lock:
            known, self._announced = self._announced, True
        if not known and state.outcome is not None:
            print(f"{self.where} does not answer ({state.outcome.exception()}); it is waited for, at most "
                  f"{clock(self._patience())}. Fix: {start_fix(self.settings)}", file=sys.stderr, flush=True)

    def _note_socket(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep the socket of a new connection, to end its requests where nobody waits for them (httpx's trace)."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            made: socket.socket = info["return_value"].get_extra_info("socket")
            with self._lock:
                self._sockets = [one for one in self._sockets if one.fileno() >= 0] + [made]  # those that are open
            if self._closed.is_set():
                _hang_up(made)


def _hang_up(connected: socket.socket) -> None:
    with suppress(OSError):  # it is closed
        connected.shutdown(socket.SHUT_RDWR)


def error_fields(reply: httpx.Response) -> dict[str, Any]:
    """Return the fields of a refusal in OpenAI's form; {} for one of another form."""
    try:
        body = reply.json()
    except (ValueError, RecursionError):
        return {}
    error = body.get("error", body) if isinstance(body, dict) else None
    return error if isinstance(error, dict) else {}


def retry_after_seconds(header: str | None) -> float:
    """Return the seconds that a Retry-After header asks for, as a number or a date; 0 for any other header.

    >>> retry_after_seconds("3"), retry_after_seconds("-3"), retry_after_seconds("nan"), retry_after_seconds(None)
    (3.0, 0.0, 0.0, 0.0)
    """
    with suppress(ValueError, TypeError):
        return max(0.0, float(header or ""))
    with suppress(ValueError, TypeError, OverflowError):
        return max(0.0, (parsedate_to_datetime(header or "") - datetime.now(UTC)).total_seconds())
    return 0.0
