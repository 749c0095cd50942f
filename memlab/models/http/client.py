"""A JSON service over HTTP, with bounded retries, back-off, a rate limit, and errors that name the remedy.

The key is read from the environment when a call starts; it enters no message, no log and no identity.
"""

from __future__ import annotations

import json
import os
import threading
import time
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field
from tenacity import Retrying

from memlab.errors import MemlabError
from memlab.models.http import reply_limit
from memlab.models.http.backoff import TemporaryFailure, retry_options
from memlab.models.protocols import Floats
from memlab.stage import stage

if TYPE_CHECKING:
    import httpx  # a tenth of a second, which the help page does not need

Url = Annotated[str, Field(pattern=r"^https?://")]
Variable = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
"""Name of an environment variable."""

FIRST_WAIT = 1.0
"""Seconds before the first retry; each further wait is twice as long."""

_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})


class Service:
    """Posts JSON to one address; may be used by several threads, and is closed by leaving its ``with`` block."""

    def __init__(self, url: str, key_env: str | None, *, retries: int, timeout: float,
                 requests_per_minute: float | None) -> None:
        import httpx

        address = httpx.URL(url)
        self.where = f"{address.scheme}://{address.netloc.decode()}{address.path}"
        self.retries, self._url, self._key_env = retries, url, key_env
        self._key = os.environ.get(key_env, "") if key_env else ""
        if key_env and not self._key:
            raise MemlabError("the service wants a key", where=self.where, fix=f"export {key_env}=YOUR_KEY")
        headers = reply_limit.HEADERS | ({"Authorization": f"Bearer {self._key}"} if self._key else {})
        self._client = httpx.Client(headers=headers, timeout=timeout, event_hooks={"response": [reply_limit.limit]})
        self._gap = 60.0 / requests_per_minute if requests_per_minute else 0.0
        self._lock, self._next = threading.Lock(), 0.0

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def post(self, body: dict[str, Any]) -> Any:
        """Return the reply to ``body``, both JSON; raises MemlabError if the service refuses or does not answer."""
        try:
            return Retrying(**retry_options(self.retries, FIRST_WAIT))(self._send, body)
        except TemporaryFailure as failure:
            raise MemlabError(f"no answer after {self.retries + 1} attempts, last: {failure}", where=self.where,
                              fix="check that the service is up and its quota is not used up, then start again: "
                                  "the answers so far are stored") from None

    def _send(self, body: dict[str, Any]) -> Any:
        from httpx import TransportError

        self._take_turn()
        try:
            reply = self._client.post(self._url, json=body)
            if reply.status_code == 200:
                return reply.json()
        except TransportError as error:  # refused, timed out, cut off
            raise TemporaryFailure(f"{type(error).__name__}: {error}") from None
        except json.JSONDecodeError:
            raise TemporaryFailure("the reply is not JSON") from None
        refusal = f"status {reply.status_code}: {self._excerpt(reply)}"
        if reply.status_code in _RETRIED:
            raise TemporaryFailure(refusal, reply.headers.get("retry-after"))
        raise MemlabError(refusal, where=self.where, fix=self._fix(reply.status_code))

    def _take_turn(self) -> None:
        """Wait until the rate limit allows one more request."""
        if self._gap:
            with self._lock:
                turn = max(self._next, time.monotonic())
                self._next = turn + self._gap
            time.sleep(max(0.0, turn - time.monotonic()))

    def _excerpt(self, reply: httpx.Response) -> str:
        """Return the beginning of a reply, without the key that some services echo."""
        text = " ".join(reply.text.split())
        return (text.replace(self._key, "***") if self._key else text)[:300]

    def _fix(self, status: int) -> str:
        if status in (401, 403):
            return f"check the key in {self._key_env}" if self._key_env else "name the key's variable with key_env"
        if status == 404:
            return "check url and model"
        if status in (400, 413, 422):
            return "check model and dimensions, or send less at once (batch, max_characters)"
        return "check url and the service's own log"


@stage
class HttpModel:
    """A model behind a JSON service over HTTP."""

    url: Url
    model: str
    key_env: Variable | None = None
    # longer passages are cut before they are sent; null: the service cuts them
    max_characters: Annotated[int, Field(ge=1)] | None = None
    batch: Annotated[int, Field(ge=1)] = 100  # passages per request; a request holds one question
    parallel: Annotated[int, Field(ge=1)] = 4  # requests at a time
    requests_per_minute: Annotated[float, Field(gt=0)] | None = None  # null: no limit
    # after 429, 5xx, time-outs and broken replies; the waits are 1, 2, 4, 8, 16 s, or what the service asks for
    retries: Annotated[int, Field(ge=0)] = 5
    timeout: Annotated[float, Field(gt=0)] = 60.0  # seconds per request

    @property
    def name(self) -> str:
        """Display name of the model."""
        return self.model

    def _service(self, path: str) -> Service:
        return Service(f"{self.url.rstrip('/')}/{path}", self.key_env, retries=self.retries, timeout=self.timeout,
                       requests_per_minute=self.requests_per_minute)


def read_items(service: Service, reply: Any, items: str, value: str, count: int, what: str) -> Floats:
    """Read ``{items: [{"index": i, value: ...}, ...]}`` in the order of the indexes; null and NaN become NaN.

    Raises MemlabError if the reply does not hold ``what``: one value for each index below ``count``.
    """
    try:
        values = {int(item["index"]): item[value] for item in reply[items]}
        if len(values) == count:
            return np.array([values[i] for i in range(count)], np.float32)
    except (KeyError, TypeError, ValueError):
        pass
    raise malformed_reply(service, f"does not hold {what}")


def malformed_reply(service: Service, what: str) -> MemlabError:
    """Return the error for a reply that is JSON of the wrong form."""
    return MemlabError(f"the reply {what}", where=service.where, fix="check that url is a service of this form")
