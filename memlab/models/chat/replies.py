"""Replies of chat servers: their forms, what they refuse, and what is counted of them.

Reasoning models refuse ``max_tokens`` and a temperature; other servers know no seed or no log-probabilities. What a
server has refused is known to the whole process, so that one request alone pays for it.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from memlab.models.chat.tokenizer import valid
from memlab.models.connection import Reply
from memlab.models.protocols import MAX_TOKENS, Chat, Completion

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

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
    """What one server takes of the fields of a request for one model. Safe for concurrent threads."""

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


@cache
def fields_of(server: str, model: str) -> Fields:  # noqa: ARG001 (the key of the cache)
    """Return what is known in this process of the fields that a server takes for a model."""
    return Fields()


_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)

_MISFITS = 200  # of a reply, among which the worst is chosen: a long list may have one in each item

MARGIN = 64
"""Tokens left for what a chat template puts around the messages."""

TEXT_PARTS = ("text", "output_text")
"""Types of the parts of a reply that are its text."""


def parse_completion(reply: Reply) -> Completion:
    """Return the completion in a server's reply; raises ValueError if there is none."""
    try:
        content = json.loads(reply.content)
        choice, usage = content["choices"][0], content.get("usage")
        finish = choice.get("finish_reason")
        message = choice["message"] if choice.get("message") or not finish else {}  # a filter may leave none
        text, refusal = message.get("content"), message.get("refusal")
        asked, written = (_count((usage or {}).get(name) or 0) for name in ("prompt_tokens", "completion_tokens"))
        if isinstance(text, list):  # parts: text, a refusal, and the thinking of some models
            parts = [part for part in text if isinstance(part, dict)]
            refusal = refusal or any(part.get("type") == "refusal" for part in parts)
            text = "".join(str(part.get("text") or "") for part in parts if part.get("type", "text") in TEXT_PARTS)
        if not isinstance(text, str | None):
            raise TypeError("its content is no text")
        finish = "declined" if refusal else str(finish or "stop")
        return Completion(valid(text or ""), asked, written, reply.seconds, valid(finish), logprob=_logprob(choice))
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"is no chat completion ({type(error).__name__}: {error})") from None


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


def trim(chat: Chat, text: str, room: int) -> str:
    """Return the beginning of a text, cut to at most ``room`` tokens; an empty text if there is no room."""
    text = text if room > 0 else ""
    while text and (size := chat.count(text)) > room:
        text = text[: min(len(text) - 1, len(text) * room // size)]
    return text


def parse_json(reply: Completion, schema: str) -> Any:
    """Return the JSON value in a reply, without words around it; None if none fits the schema.

    >>> parse_json(Completion('Sure: {"k": 1}', 0, 0, 0.0), '{"type": "object"}')
    {'k': 1}
    """
    text = mend(reply.answer, schema)
    return None if text is None else json.loads(text)


def fault(text: str, schema: str) -> str | None:
    """Return why a reply does not fit a schema, with the place of the fault, or None if it fits.

    >>> fault('{"k": "x"}', '{"type": "object", "properties": {"k": {"type": "integer"}}}')
    'k: expected integer'
    >>> fault('[1]', '{"type": "array"}') is None
    True
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return f"no JSON ({error})"
    from jsonschema.exceptions import best_match

    misfit = best_match(islice(_validator(schema).iter_errors(value), _MISFITS))
    return misfit and f"{misfit.json_path.removeprefix('$').removeprefix('.') or 'reply'}: {_message(misfit)}"


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which Python reads and JSON does not have: no bound of a schema excludes NaN."""
    raise ValueError(f"{name} is no number")


def mend(text: str, schema: str) -> str | None:
    """Return the JSON in a reply that fits a schema: all of it, in a code fence, or the outermost braces or brackets.

    >>> mend('Sure: {"k": 1} - anything else?', '{"type": "object"}')
    '{"k": 1}'
    """
    candidates = [text, *(match.strip() for match in _FENCED.findall(text))]
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            candidates.append(text[start:end + 1])
    return next((candidate for candidate in candidates if fault(candidate, schema) is None), None)


def request(schema: str) -> str:
    """Return the request for JSON in words, for servers that cannot bind a reply to a schema."""
    return f"Answer with JSON alone, no other word, that fits this JSON schema:\n{schema}"


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))


def _message(misfit: ValidationError) -> str:
    """Describe a misfit by the schema alone: the library's own messages quote the reply, which may be long."""
    keyword, expected = str(misfit.validator), misfit.validator_value
    if keyword == "type":
        return f"expected {expected if isinstance(expected, str) else ' or '.join(expected)}"
    if keyword == "enum":
        return f"expected one of {json.dumps(expected)}"
    if keyword == "required":
        return f"{next(name for name in expected if name not in misfit.instance)} is missing"
    return f"expected {keyword} {json.dumps(expected)}"
