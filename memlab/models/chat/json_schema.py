"""Replies that must be JSON: checked against a schema, and freed of text around the JSON."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)


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
