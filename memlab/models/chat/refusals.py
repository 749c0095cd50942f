"""Requests that a chat server refuses: prompts that are too long or withheld, and fields that it does not take.

Reasoning models refuse ``max_tokens`` and a temperature; other servers know no seed or no log-probabilities. What a
server has refused is known to the whole process, so that one request alone pays for it.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from memlab.models.connection import Reply

RENAMED = {"max_tokens": "max_completion_tokens"}
"""Fields that are sent under another name, since a request without them means something else."""

LEFT_OUT = ("temperature", "seed", "logprobs")
"""Fields without which a request can be sent: the server's own default holds, and the reply says so."""

FIELDS = (*RENAMED, *RENAMED.values(), *LEFT_OUT, "reasoning_effort", "response_format")
"""Fields that a request may have beside the model and the messages."""

REFUSAL_WAIT = 2.0
"""Seconds in which a server refuses a field. It does so before it writes a word, so nobody waits for longer."""

_LOOK = 0.005  # seconds between two looks at whether the first request has been answered

_UNKNOWN = re.compile(
    r"unsupported|not (be )?(support|permit|allow|accept|recogni|compatib)|n't support|unknown|unrecogni[sz]ed|"
    r"extra.?(inputs|forbidden)|cannot find field|unexpected|deprecated|not available|"
    r"only.{0,40}(allowed|supported|default)|may only be|no such (field|parameter)", re.IGNORECASE)
_RANGE = re.compile(r"too (large|high|small|low|big)|at (most|least)|between|greater than|less than|exceed",
                    re.IGNORECASE)
_ADVICE = re.compile(r"\buse\b\W*\w+\W*\binstead\b", re.IGNORECASE)
_LONG = re.compile(r"context.(length|window)|maximum model length|max_model_len|(prompt|input).{0,40}too long|"
                   r"reduce the length", re.IGNORECASE)
_SCHEMA = re.compile(r"response_?format|json_?schema|guided|structured.?output|grammar", re.IGNORECASE)
_CODES = ("unsupported_parameter", "unsupported_value", "unknown_parameter")

_known_lock = threading.Lock()


class Refused(Exception):
    """The server refuses a request as it is.

    Its reason: the prompt does not fit into the server's window, its filter withholds a reply, it cannot bind a reply
    to the schema, or it does not take the fields ``names``, for this model at least.
    """

    def __init__(self, reason: Literal["too long", "withheld", "schema", "fields"], message: str,
                 names: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.reason, self.names = reason, names


def check_refusal(reply: Reply) -> None:
    """Raise Refused if the request can be answered, or sent in another form; return for any other refusal."""
    status, error, text = reply.status, reply.error, reply.text
    if status == 413 or (status in (400, 422) and _LONG.search(text)):
        raise Refused("too long", reply.message)
    if status == 400 and error.get("code") == "content_filter":
        raise Refused("withheld", reply.message)
    names = refused_fields(error.get("param"), error.get("code"), text) if status in (400, 403, 422) else ()
    if names and "response_format" not in names:
        raise Refused("fields", reply.message, names)
    if status in (400, 422) and (names or _SCHEMA.search(text)):
        raise Refused("schema", reply.message)


def refused_fields(param: object, code: object, message: str) -> tuple[str, ...]:
    """Return the fields that a server's error (status 400, 403 or 422) refuses; () if it refuses none.

    ``param`` and ``code`` are those of OpenAI's errors; other servers name the field in the message alone. A value
    outside a range is the user's to mend, and no refusal.

    >>> refused_fields("max_tokens", "unsupported_parameter", "Use 'max_completion_tokens' instead.")
    ('max_tokens',)
    >>> refused_fields(None, None, 'Unknown name "seed": Cannot find field.')
    ('seed',)
    >>> refused_fields("max_tokens", "invalid_value", "max_tokens is too large: 9000")
    ()
    """
    if code in _CODES or (_UNKNOWN.search(message) and not _RANGE.search(message)):
        name = re.split(r"[.\[]", str(param or ""))[0]
        named = _ADVICE.sub("", message) if name not in FIELDS else name
        if names := tuple(field for field in FIELDS if re.search(rf"(?<!\w){field}(?!\w)", named)):
            return names
    return ("logprobs",) if "logprobs" in message.lower() else ()


class Fields:
    """What one server takes of the fields of a request for one model. Threads may ask side by side."""

    def __init__(self) -> None:
        self._refused: set[str] = set()
        self._schemas: set[str] = set()  # those that the server cannot bind a reply to
        self._first: dict[tuple[str, ...], float] = {}  # kind of request -> until when others wait for the first one
        self._lock = threading.Lock()

    def adapt(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request as the server takes it, as far as that is known."""
        with self._lock:
            return {RENAMED[name] if name in self._refused else name: value for name, value in body.items()
                    if name in RENAMED or name not in self._refused}

    def learn(self, names: Iterable[str], sent: Mapping[str, Any]) -> bool:
        """Take note of refused fields; return whether the request can be sent in another form than ``sent``."""
        refused = [name for name in names if name in sent]
        if not refused or not {*refused} <= {*RENAMED, *LEFT_OUT}:
            return False
        with self._lock:
            self._refused.update(refused)
        return True

    def takes_schema(self, schema: str | None) -> bool:
        """Return whether the server has not refused this schema."""
        return schema not in self._schemas

    def refuse_schema(self, schema: str) -> None:
        """Take note that the server cannot bind replies to a schema."""
        self._schemas.add(schema)

    @asynccontextmanager
    async def turn(self, *kind: str) -> AsyncIterator[None]:
        """Let the first request of a kind (its fields) go ahead, so that a refused field is refused only once.

        The others wait until it has been answered, at most ``REFUSAL_WAIT`` seconds.
        """
        with self._lock:
            first = kind not in self._first
            if first:
                self._first[kind] = time.monotonic() + REFUSAL_WAIT
        while not first and time.monotonic() < self._first[kind]:
            await asyncio.sleep(_LOOK)
        try:
            yield
        finally:
            if first:
                self._first[kind] = 0.0


def changes(body: Mapping[str, Any], sent: Mapping[str, Any]) -> str:
    """Return in words what was sent in place of ``body``, joined by "; "; "" if it is the same.

    >>> changes({"max_tokens": 16, "temperature": 0.0}, {"max_completion_tokens": 16})
    'max_completion_tokens: 16 (the server refuses max_tokens); temperature: not sent (refused by the server)'
    """
    return "; ".join(f"{RENAMED[name]}: {value} (the server refuses {name})" if name in RENAMED
                     else f"{name}: not sent (refused by the server)"
                     for name, value in body.items() if name not in sent)


_known: dict[tuple[str, str], Fields] = {}


def fields_of(server: str, model: str) -> Fields:
    """Return what is known in this process of the fields that a server takes for a model."""
    with _known_lock:
        return _known.setdefault((server, model), Fields())
