"""Typed values of JSON for the readers of exports; a value of another type is empty."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def text_of(value: object) -> str:
    """Return a text without blanks at its ends; "" for anything else."""
    return value.strip() if isinstance(value, str) else ""


def name_of(value: object) -> str:
    """Return a text, or a whole number as text; "" for anything else."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else text_of(value)


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def walk(value: Any, path: str) -> Iterator[Any]:
    """Yield the values at a path.

    >>> list(walk({"a": [{"b": 1}, {"b": None}, {}]}, "a.*.b")), list(walk([7, 8], "1"))
    ([1, None], [8])
    """
    if path in ("", "."):
        yield value
        return
    step, _, rest = path.partition(".")
    if step in ("*", "[]"):
        values = value.values() if isinstance(value, dict) and step == "*" else value
        for inner in values if not isinstance(values, str | dict) and isinstance(values, Iterable) else ():
            yield from walk(inner, rest)
    elif isinstance(value, dict) and step in value:
        yield from walk(value[step], rest)
    elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        yield from walk(value[int(step)], rest)


def first_at(value: Any, paths: Iterable[str]) -> Any:
    """Return the first value that holds something at one of several paths; None for none."""
    return next((found for path in paths for found in walk(value, path) if found not in (None, "", [], {})), None)


def first_text(value: Any, *paths: str) -> str:
    """Return the first text at one of several paths; "" for none.

    >>> first_text({"profile": {"name": " "}, "id": "U1"}, "profile.name", "name", "id")
    'U1'
    """
    return next(filter(None, (text_of(found) for path in paths for found in walk(value, path))), "")
