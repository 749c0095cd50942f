"""Replies of chat models: read from a server's JSON, cut to a window, and checked against a JSON schema."""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from memlab.models.chat.protocol import MAX_TOKENS, Chat, Completion
from memlab.models.chat.tokenizer import valid

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)

MARGIN = 64
"""Tokens left for what a chat template puts around the messages."""

TEXT_PARTS = ("text", "output_text")
"""Types of the parts of a reply that are its text."""


def parse_completion(reply: bytes, seconds: float) -> Completion:
    """Return the completion in a server's reply; raises ValueError if there is none."""
    try:
        content = json.loads(reply)
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
        return Completion(valid(text or ""), asked, written, seconds, valid(finish), logprob=_logprob(choice))
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
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"no JSON ({error})"
    from jsonschema.exceptions import best_match

    misfit = best_match(_validator(schema).iter_errors(value))
    return misfit and f"{misfit.json_path.removeprefix('$').removeprefix('.') or 'reply'}: {_message(misfit)}"


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


def second_request(what: str, schema: str) -> str:
    """Return the second request, which names the fault of the first reply."""
    return f"That does not fit: {what}. {request(schema)}"


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
