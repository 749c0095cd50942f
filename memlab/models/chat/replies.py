"""Replies of chat servers: their formats, errors and counts."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal

from memlab.models.chat.tokenizer import valid
from memlab.models.connection import error_fields
from memlab.models.protocols import MAX_TOKENS, Chat, Completion

if TYPE_CHECKING:
    import httpx
    from jsonschema import Draft202012Validator

_LONG = re.compile(r"context.(length|window)|maximum model length|max_model_len|(prompt|input).{0,40}too long|"
                   r"reduce the length", re.IGNORECASE)
_SCHEMA = re.compile(r"response_?format|json_?schema|guided|structured.?output|grammar", re.IGNORECASE)


def refusal_reason(reply: httpx.Response) -> Literal["too long", "withheld", "schema"] | None:
    """Return why a request is refused, if it can be answered all the same, or sent in another form.

    The prompt does not fit into the server's window, its filter withholds a reply, or it cannot bind one to the schema.
    """
    if reply.status_code == 413 or _LONG.search(reply.text):
        return "too long"
    if error_fields(reply).get("code") == "content_filter":
        return "withheld"
    return "schema" if _SCHEMA.search(reply.text) else None


_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)

_MISFITS = 200  # of a reply, among which the worst is chosen: a long list may have one in each item

MARGIN = 64
"""Tokens left for what a chat template puts around the messages."""

TEXT_PARTS = ("text", "output_text")
"""Types of the parts of a reply that are its text."""


def parse_completion(reply: httpx.Response) -> Completion:
    """Return the completion in a server's reply; raises ValueError if there is none."""
    try:
        content = reply.json()
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
        return Completion(valid(text or ""), asked, written, reply.elapsed.total_seconds(), valid(finish),
                          logprob=_logprob(choice))
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

    The library's own messages quote the reply, which may be long.

    >>> fault('{"k": "x"}', '{"type": "object", "properties": {"k": {"type": "integer"}}}')
    'k: expected type "integer"'
    >>> fault('[1]', '{"type": "array"}') is None
    True
    """
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return f"no JSON ({error})"
    from jsonschema.exceptions import best_match

    misfit = best_match(islice(_validator(schema).iter_errors(value), _MISFITS))
    return misfit and (f"{misfit.json_path.removeprefix('$').removeprefix('.') or 'reply'}: "
                       f"expected {misfit.validator} {json.dumps(misfit.validator_value)}")


def _refuse_constant(name: str) -> None:
    """Refuse NaN and the infinities, which Python reads and JSON does not have: no bound of a schema excludes NaN."""
    raise ValueError(f"{name} is no number")


def mend(text: str, schema: str) -> str | None:
    """Return the JSON in a reply that fits a schema: all of it, in a code fence, or the outermost braces or brackets.

    None if there is none, or if code fences hold values that differ: which one the model means is not known.

    >>> mend('Sure: {"k": 1} - anything else?', '{"type": "object"}')
    '{"k": 1}'
    """
    if fault(text, schema) is None:
        return text
    candidates = [match.strip() for match in _FENCED.findall(text)]
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            candidates.append(text[start:end + 1])
    fitting = [candidate for candidate in candidates if fault(candidate, schema) is None]
    agree = all(json.loads(one) == json.loads(fitting[0]) for one in fitting[1:])
    return fitting[0] if fitting and agree else None


def request(schema: str) -> str:
    """Return the request for JSON in words, for servers that cannot bind a reply to a schema."""
    return f"Answer with JSON alone, no other word, that fits this JSON schema:\n{schema}"


@lru_cache(maxsize=64)
def _validator(schema: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(json.loads(schema))
