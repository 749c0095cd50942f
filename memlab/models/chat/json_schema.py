"""Replies that must be JSON: checked against a schema, and mended where they are JSON in wrapping."""

from __future__ import annotations

import json
import re
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool,
    "null": type(None)}
_FENCED = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)


def fault(text: str, schema: str) -> str | None:
    """Say why a reply does not fit a schema, or return None if it does.

    Checked are type, properties, required, additionalProperties: false, items, enum, const and anyOf, with the place of
    the first fault; other words of a schema are left to the server.

    >>> fault('{"k": "x"}', '{"type": "object", "properties": {"k": {"type": "integer"}}}')
    'k: expected integer'
    >>> fault('[1]', '{"type": "array"}') is None
    True
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"no JSON ({error})"
    return _misfit(value, json.loads(schema), "")


def mend(text: str, schema: str) -> str | None:
    """Return the JSON inside a reply that fits a schema: out of a code fence, or the outermost braces or brackets.

    >>> mend('Sure: {"k": 1} - anything else?', '{"type": "object"}')
    '{"k": 1}'
    """
    inside = [match.strip() for match in _FENCED.findall(text)]
    for opening, closing in ("{}", "[]"):
        start, end = text.find(opening), text.rfind(closing)
        if 0 <= start < end:
            inside.append(text[start:end + 1])
    return next((part for part in inside if fault(part, schema) is None), None)


def request(schema: str) -> str:
    """Ask for JSON in words, for servers that cannot be bound to a schema."""
    return f"Answer with JSON alone, no other word, that fits this JSON schema:\n{schema}"


def again(what: str, schema: str) -> str:
    """Ask once more, saying what was wrong."""
    return f"That does not fit: {what}. {request(schema)}"


def _misfit(value: Any, schema: Any, place: str) -> str | None:
    if not isinstance(schema, dict):  # true or {} allow everything
        return f"{place or 'reply'}: not allowed" if schema is False else None
    what = _own_misfit(value, schema)
    if what:
        return f"{place or 'reply'}: {what}"
    if isinstance(value, dict):
        for name, part in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties", True))
            if found := _misfit(part, inner, f"{place}.{name}".lstrip(".")):
                return found
    if isinstance(value, list):
        for i, part in enumerate(value):
            if found := _misfit(part, schema.get("items", True), f"{place}[{i}]"):
                return found
    options = schema.get("anyOf")
    if options and all(_misfit(value, option, place) for option in options):
        return f"{place or 'reply'}: fits no alternative"
    return None


def _own_misfit(value: Any, schema: dict[str, Any]) -> str | None:
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"expected {' or '.join(kinds)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"expected one of {json.dumps(schema['enum'])}"
    if "const" in schema and value != schema["const"]:
        return f"expected {json.dumps(schema['const'])}"
    if isinstance(value, dict) and (missing := [name for name in schema.get("required", []) if name not in value]):
        return f"{missing[0]} is missing"
    return None


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):  # to Python a bool is an int, to JSON it is not
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES.get(kind, object))
