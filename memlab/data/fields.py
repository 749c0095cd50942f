"""Fields of a session besides its text: five free names, and metadata as JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from memlab.support.errors import MemlabError, did_you_mean
from memlab.support.text.display import replace_surrogates

FIELDS = ("user", "agent", "room", "source", "kind")
"""Free names that a session may have."""

ROLES = ("user", "assistant")
"""Who may say a turn."""

Plain = str | int | float | bool | None
"""A value by which filters choose."""

DEPTH = 20
"""Lists and objects of metadata within each other, at most."""


def check_fields(names: Iterable[str]) -> None:
    """Raise MemlabError for a field that no session has."""
    for name in names:
        if name not in (*FIELDS, "metadata"):
            raise MemlabError(f"there is no field {name!r:.40}", where="session",
                              fix=did_you_mean(name, ("said_on", "name", *FIELDS, "metadata")))


def read_name(value: object, where: str) -> str | None:
    """Return a name without half surrogates, or None; raise MemlabError for anything else."""
    if not (value is None or isinstance(value, str)):
        raise MemlabError(f"expected text, got {type(value).__name__}", where=where, fix="give text, or None")
    return value if value is None else replace_surrogates(value)


def is_plain(value: object) -> bool:
    """Return whether a value is text, a number (a whole one of 64 bits), true, false or None."""
    if isinstance(value, int):
        return value.bit_length() < 64
    return value is None or isinstance(value, str) or isinstance(value, float) and math.isfinite(value)


def brief(value: object, width: int = 40) -> str:
    """Return a value as a message shows it."""
    try:
        return repr(value)[:width] if is_plain(value) or not isinstance(value, int) else "a number of more than 64 bits"
    except ValueError:  # Python writes no number of thousands of digits
        return f"a {type(value).__name__} with numbers of more than 64 bits"


def read_metadata(value: object) -> dict[str, Any]:
    """Return metadata, empty for None; raise MemlabError unless they are an object of JSON.

    >>> read_metadata({"project": "boat", "pages": [3, 4]})
    {'project': 'boat', 'pages': [3, 4]}
    """
    if not (value is None or isinstance(value, Mapping)):
        raise MemlabError(f"expected an object, got {type(value).__name__}", where=_METADATA, fix=_WRITE)
    metadata: dict[str, Any] = _json(value or {}, "")
    return metadata


_METADATA = "session, metadata"
_WRITE = 'write {"project": "boat", "pages": [3, 4]}: values are those of JSON'


def _json(value: object, key: str, depth: int = DEPTH) -> Any:
    """Return a value as JSON has it, without half surrogates."""
    if is_plain(value):
        return replace_surrogates(value) if isinstance(value, str) else value
    if not isinstance(value, Mapping | list | tuple):
        raise MemlabError(f"the value of '{key:.40}' is not plain: {brief(value)}", where=_METADATA, fix=_WRITE)
    if not depth:
        raise MemlabError(f"'{key:.40}' has more than {DEPTH} lists and objects within each other", where=_METADATA,
                          fix="make it flatter")
    if not isinstance(value, Mapping):
        return [_json(item, key, depth - 1) for item in value]
    if wrong := [name for name in value if not isinstance(name, str)]:
        raise MemlabError(f"{brief(wrong[0])} is no key", where=_METADATA, fix=_WRITE)
    return {replace_surrogates(name): _json(item, name, depth - 1) for name, item in value.items()}


def values_of(metadata: object, key: str) -> list[Plain]:
    """Return the values by which a filter finds a key: a list's own, none of an object; None if the key is not there.

    A dot of the key may be its own, or lead into an object, or into the objects of a list.

    >>> content = {"a": {"b": [1, 2]}, "a.c": 3, "d": [{"e": 4}, {"e": {}}]}
    >>> [values_of(content, key) for key in ("a.b", "a.c", "a", "d.e", "d.f")]
    [[1, 2], [3], [], [4], [None]]
    """
    items = [item for value in _at(metadata, key) or [None] for item in (value if isinstance(value, list) else [value])]
    return [item for item in items if item is None or isinstance(item, str | int | float)]


def _at(content: object, key: str) -> list[object]:
    if isinstance(content, list):
        return [value for item in content for value in _at(item, key)]
    if not isinstance(content, Mapping):
        return []
    within = [(key[:place], key[place + 1:]) for place, letter in enumerate(key) if letter == "."]
    return [*([content[key]] if key in content else []),
            *(value for head, rest in within if head in content for value in _at(content[head], rest))]
