"""The connection to one chat server, with repeated requests, waits, and errors that end the run.

Busy (429, 5xx, broken replies): the request is sent again after a growing, jittered wait, or after the wait that the
server asks for. Away (no connection, time-outs, 502 to 504): all requests wait while one probes whether the server is
back. A refused key, an unknown model, a wrong request, or an address where nothing has ever listened end the run.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field
from tenacity import AsyncRetrying

from memlab.errors import MemlabError, did_you_mean
from memlab.models.chat.failures import ErrorKind, ServerUnavailable, classify
from memlab.models.chat.protocol import MAX_TOKENS, Completion
from memlab.models.chat.server_key import NO_KEY, is_registered, key_fix, server_key, start_fix
from memlab.models.chat.tokenizer import valid
from memlab.models.http import reply_limit
from memlab.models.http.backoff import LONGEST_WAIT, TemporaryFailure, asked_wait, retry_options
from memlab.models.http.client import Variable
from memlab.runtime.progress import clock
from memlab.runtime.terminal import print
from memlab.stage import stage

FIRST_WAIT = 0.5
"""Seconds before the first repeat."""

PROBE_WAIT = 5.0
"""Longest time in seconds between two probes of a server that is away; a new vLLM takes 40 s to start."""

PROBE_TIMEOUT = 5.0
"""Seconds in which a running server answers a probe."""

UNREACHABLE_WAIT = 3.0
"""Seconds for which an address is probed if nothing there has answered this process yet."""

_known_servers: set[str] = set()  # addresses that have answered this process, if only with an error or too late
_SHOWN = 300  # characters of a server's own message that are shown


@stage
class ChatSettings:
    """The settings of a chat model that its connections need."""

    model: Annotated[str, Field(min_length=1)]
    # an address, or auto; not part of the identity
    url: Annotated[str, Field(pattern=r"^(auto$|https?://)")] = "http://127.0.0.1:8000/v1"
    key_env: Variable | None = None  # variable that holds the key; null: that of `memlab.serve`'s record, or none
    # 0: the likeliest word each time, so that a run can be repeated; null: never sent, not for votes either, and the
    # server's own default holds. A server that refuses it is asked without, and the run says so
    temperature: Annotated[float, Field(ge=0)] | None = 0.0
    seed: int = 0  # sent with every request, plus the number of the sample
    # of a reply, the thinking of a reasoning model included; sent as max_completion_tokens where the server asks for it
    max_tokens: Annotated[int, Field(ge=1)] = 256
    # how long a reasoning model thinks, e.g. medium; null: not sent, and the server's own default holds
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None
    # ask for the log-probability of each reply, kept with the answer; a server that has none is asked without
    logprobs: bool = False
    # requests at a time (auto: to each server); a vLLM server on a GPU takes 64 and more
    concurrency: Annotated[int, Field(ge=1)] = 16
    timeout: Annotated[float, Field(gt=0)] = 300.0  # seconds for one whole reply
    # longest wait, in seconds, for a server that is away; 3 s if it has never answered, unless url is auto
    patience: Annotated[float, Field(ge=0)] = 600.0
    # after 429, 5xx, time-outs and broken replies; the waits are 0.5, 1, 2 ... s, or what the server asks for
    retries: Annotated[int, Field(ge=0)] = 6


class Connection:
    """The connection to one server, shared by all requests to it within one event loop."""

    def __init__(self, settings: ChatSettings) -> None:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        address = urlsplit(settings.url)
        self.settings = settings
        self.where = f"{address.scheme}://{address.netloc.rpartition('@')[2]}{address.path}"
        self._key = server_key(settings.url, settings.key_env)
        # the environment's proxy leads neither to this machine itself nor to another node
        local = address.hostname in ("127.0.0.1", "localhost", "::1") or is_registered(settings.url)
        self._client = AsyncOpenAI(
            base_url=settings.url, api_key=self._key, max_retries=0, timeout=settings.timeout,
            default_headers=reply_limit.HEADERS,
            # a redirect would take the conversation to another place; no model server needs one
            http_client=DefaultAsyncHttpxClient(trust_env=not local, follow_redirects=False,
                                                event_hooks={"response": [reply_limit.limit_async]}))
        self._probing, self._alive_at, self._pause_until = asyncio.Lock(), 0.0, 0.0

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()

    async def serves(self) -> bool:
        """Return whether the server accepts the key and knows the model."""
        return self.settings.model in await self._models()

    async def alive(self) -> bool:
        """Return whether the server answers anything at all; a gateway's 502 to 504 does not count."""
        import openai

        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                await self._client.models.list()
        except openai.APIStatusError as error:
            return error.status_code not in (502, 503, 504)
        except (openai.APIConnectionError, TimeoutError):
            return False
        except Exception:  # noqa: S110  an unreadable answer is an answer
            pass
        return True

    async def post(self, body: dict[str, Any]) -> Completion:
        """Return the reply.

        Raises MemlabError (ServerUnavailable if another server may help), TooLong, Withheld, FieldsRefused or
        NoSchema.
        """
        try:
            return await AsyncRetrying(**retry_options(self.settings.retries, FIRST_WAIT))(self._attempt, body)
        except TemporaryFailure as failure:
            last = failure
        raise ServerUnavailable(f"no answer after {self.settings.retries + 1} attempts, last: {last}", where=self.where,
                                answers=True, fix="look into the server's log, then give the same line again: what was "
                                                  "answered is stored")

    async def _send(self, body: dict[str, Any]) -> Completion:
        start = time.monotonic()
        async with asyncio.timeout(self.settings.timeout):  # the client's own limit is for each read
            # chat.completions.create spends a third of its time on types that nothing here uses
            reply = await self._client.post("/chat/completions", cast_to=bytes, body=body)
        return parse_completion(reply, time.monotonic() - start)

    async def _attempt(self, body: dict[str, Any]) -> Completion:
        await self._wait_turn()
        try:
            reply = await self._send(body)
            _known_servers.add(self.where)
            return reply
        except Exception as error:
            failure, failed_at = classify(error), time.monotonic()
        if failure.kind != "unreachable":
            _known_servers.add(self.where)
        message = self._redact(failure.message)
        if failure.kind == "key" and self._renew_key():
            raise TemporaryFailure(message, retry_after="0")  # at once, with the new key
        if failure.kind in ("key", "unknown", "wrong"):
            what = f"the {'key' if failure.kind == 'key' else 'request'} is refused ({message})"
            error_class = MemlabError if failure.kind == "wrong" else ServerUnavailable
            raise error_class(what, where=self.where, fix=await self._fix(failure.kind))
        if failure.kind in ("away", "unreachable"):
            await self._wait_until_back(failed_at, message)
        if pause := min(asked_wait(failure.retry_after, 0.0), LONGEST_WAIT):  # it is meant for all requests
            self._pause_until = max(self._pause_until, time.monotonic() + pause)
        raise TemporaryFailure(message, failure.retry_after)

    async def _wait_turn(self) -> None:
        """Wait while the server is away, or has asked for a pause."""
        if self._probing.locked():
            async with self._probing:
                pass
        while (remaining := self._pause_until - time.monotonic()) > 0:
            await asyncio.sleep(remaining)

    async def _wait_until_back(self, failed_at: float, message: str) -> None:
        """Return when the server answers: one request probes, the others wait; raise MemlabError after ``patience``."""
        async with self._probing:
            if self._alive_at > failed_at:  # another request has probed meanwhile
                return
            start, pause = time.monotonic(), FIRST_WAIT
            expected = self.where in _known_servers or is_registered(self.settings.url)
            patience = min(self.settings.patience, math.inf if expected else UNREACHABLE_WAIT)
            while not await self.alive():
                waited, fix = time.monotonic() - start, await self._fix("away")
                if waited >= patience:
                    away = f"the server has been away for {clock(waited)}" if patience else "the server is away"
                    raise ServerUnavailable(
                        f"{away if expected else 'no server is there'} ({message})", where=self.where,
                        fix=f"{fix}; then give the same line again: what was answered is stored")
                if expected and pause == FIRST_WAIT:
                    print(f"{self.where} does not answer ({message}); it is waited for, at most {clock(patience)}. "
                          f"Fix: {fix}", file=sys.stderr, flush=True)
                await asyncio.sleep(min(pause, patience - waited))
                pause = min(2 * pause, max(PROBE_WAIT, FIRST_WAIT))
            self._alive_at = time.monotonic()
            if expected and pause != FIRST_WAIT:
                print(f"{self.where} answers again", file=sys.stderr, flush=True)

    async def _fix(self, kind: ErrorKind) -> str:
        """Return the remedy for a failure."""
        settings = self.settings
        if kind == "key":
            return key_fix(settings.key_env, self._key)
        if kind == "wrong":
            return "check the chat's settings, and the server's log"
        if kind == "unknown":
            names = await self._models()
            return (f"chat.model=NAME; {did_you_mean(settings.model, names)}" if names
                    else "check chat.url, which mostly ends in /v1")
        return start_fix(settings.url, settings.model)

    async def _models(self) -> list[str]:
        """Return the names of the server's models; [] if it is no chat server."""
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                return [model.id for model in (await self._client.models.list()).data]
        except Exception:
            return []

    def _renew_key(self) -> bool:
        """Read the key again, since the server may have been restarted; return whether it changed."""
        old, self._key = self._key, server_key(self.settings.url, self.settings.key_env)
        self._client.api_key = self._key
        return self._key != old

    def _redact(self, message: str) -> str:
        """Return a server's message in one line, without the key and without control characters."""
        if self._key != NO_KEY:
            message = message.replace(self._key, "***")
        return " ".join("".join(c if c.isprintable() else " " for c in message).split())[:_SHOWN]


TEXT_PARTS = ("text", "output_text")
"""Types of the parts of a reply that are its text."""


def parse_completion(reply: bytes, seconds: float) -> Completion:
    """Read a server's reply; raises ValueError if it is not a chat completion."""
    try:
        content = json.loads(reply)
        choice, usage = content["choices"][0], content.get("usage")
        finish = choice.get("finish_reason")
        message = choice["message"] if choice.get("message") or not finish else {}  # a filter may leave none
        text, refusal = message.get("content"), message.get("refusal")
        asked, written = (_count((usage or {}).get(name) or 0) for name in ("prompt_tokens", "completion_tokens"))
    except (AttributeError, KeyError, TypeError, IndexError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    if isinstance(text, list):  # parts: text, a refusal, and the thinking of some models
        parts = [part for part in text if isinstance(part, dict)]
        refusal = refusal or any(part.get("type") == "refusal" for part in parts)
        text = "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") in TEXT_PARTS)
    if not isinstance(text, str | None):
        raise ValueError("its content is no text")
    finish = "declined" if refusal else str(finish or "stop")
    return Completion(valid(text or ""), asked, written, seconds, valid(finish), logprob=_logprob(choice))


def _count(value: Any) -> int:
    """Return a number of tokens; raise ValueError for one that no server can mean, which tables could not hold."""
    count = int(value)
    if not 0 <= count <= MAX_TOKENS:
        raise ValueError(f"{str(value)[:20]} tokens")
    return count


def _logprob(choice: dict[str, Any]) -> float | None:
    """Return the sum of the tokens' log-probabilities; None if there are none, or not of every token."""
    try:
        content = (choice.get("logprobs") or {}).get("content")
        total = math.fsum(float(token["logprob"]) for token in content) if content else math.nan
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
        return None
    return total if math.isfinite(total) else None
