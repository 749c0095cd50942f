"""YAML without aliases and tags, of limited size: a few aliases can unfold into billions of values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from memlab.runtime.files import open_plain

LARGEST = 2**20
"""Characters of a file at most; memlab's own configurations have some ten thousand."""


def loads(text: str) -> Any:
    """Return the value of YAML text; raise ValueError past a limit, and yaml.YAMLError or RecursionError if it is none.

    >>> loads("a: [1, x]")
    {'a': [1, 'x']}
    >>> loads("a: &a [1]\\nb: *a")
    Traceback (most recent call last):
    ...
    ValueError: aliases are not allowed: a few can unfold into billions of values
    """
    if len(text) > LARGEST:
        raise ValueError(f"more than {LARGEST:,} characters")
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, yaml.CSafeLoader)):
        raise ValueError("aliases are not allowed: a few can unfold into billions of values")
    return yaml.load(text, yaml.CSafeLoader)  # noqa: S506  (a safe loader, written in C)


def read(path: Path) -> Any:
    """Return the value of a file as ``loads`` does; raise OSError as well, also for a pipe or a device."""
    with open_plain(path) as file:
        return loads(file.read(4 * LARGEST + 1).decode("utf-8-sig"))
