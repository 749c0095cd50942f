"""Fields of a session beside its words: five free names, and metadata of plain values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from memlab.errors import MemlabError, did_you_mean
from memlab.text.display import replace_surrogates

FIELDS = ("user", "agent", "room", "source", "kind")
"""Free names that a session may have."""

ROLES = ("user", "assistant")
"""Who may say a turn."""

Plain = str | int | float | bool | None
"""A value of metadata."""


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


def brief(value: object) -> str:
    """Return a value as a message shows it."""
    return "a number of more than 64 bits" if isinstance(value, int) and not is_plain(value) else f"{value!r:.40}"


def read_metadata(value: object) -> dict[str, Plain]:
    """Return metadata, empty for None; raise MemlabError unless keys are text and values are plain.

    >>> read_metadata({"project": "boat", "page": 3})
    {'project': 'boat', 'page': 3}
    """
    where, fix = "session, metadata", 'write {"project": "boat"}: values are text, numbers, true, false or None'
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise MemlabError(f"expected an object, got {type(value).__name__}", where=where, fix=fix)
    metadata: dict[str, Plain] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise MemlabError(f"{key!r:.40} is no key", where=where, fix=fix)
        if not is_plain(item):
            raise MemlabError(f"the value of '{key:.40}' is not plain: {brief(item)}", where=where, fix=fix)
        metadata[replace_surrogates(key)] = replace_surrogates(item) if isinstance(item, str) else item
    return metadata
