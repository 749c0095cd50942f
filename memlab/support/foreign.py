"""Checks of files from outside: data, chats, documents, rankings, a run folder that is opened.

Each must be a plain file, since the bytes of a pipe or a device may never come or end, and has a limit on its size.
"""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import yaml

from memlab.support.errors import MemlabError
from memlab.support.files import open_plain

MOST_LEVELS = 100
"""Lists and mappings of YAML inside each other; configurations have at most some 15."""

MOST_BYTES = 10_000_000
"""Characters of one text; a novel has about 500,000."""

MOST_OF_JSON = 256_000_000
"""Bytes of a JSON file of a run, a report or a sweep; a comparison of a hundred arms has some ten million."""

MOST_OF_YAML = 2**20
"""Characters of a YAML file; memlab's own configurations have some ten thousand."""

DIGITS = 18
"""Digits of a whole number, so that each fits into 64 bits; Python itself refuses those of thousands of digits."""


def read_bytes(path: Path, most: int, too_large: MemlabError | None = None) -> bytes:
    """Return the bytes of a plain file; of one with more than ``most``, raise ``too_large``, or OSError without it."""
    with open_plain(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise too_large or OSError(errno.EFBIG, f"it has more than {most / 1e6:,.0f} MB, the limit", str(path))
    return content


def load_json(text: str) -> Any:
    """Return the value of JSON; raise ValueError if it is none, or nested so deeply that Python cannot hold it.

    >>> load_json("[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: lists and objects are nested too deeply
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("lists and objects are nested too deeply") from error


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that a JSON file holds; raise OSError, or ValueError if it holds none within the limit."""
    content = load_json(read_bytes(path, MOST_OF_JSON).decode())
    if not isinstance(content, dict):
        raise ValueError("it is no JSON object")
    return content


def load_yaml(text: str) -> Any:
    """Return the value of YAML without aliases and tags; raise ValueError past a limit, yaml.YAMLError if it is none.

    >>> load_yaml("a: [1, x]")
    {'a': [1, 'x']}
    >>> load_yaml("a: &a [1]\\nb: *a")
    Traceback (most recent call last):
    ...
    ValueError: aliases are not allowed: a few can unfold into billions of values
    """
    if len(text) > MOST_OF_YAML:
        raise ValueError(f"more than {MOST_OF_YAML:,} characters")
    level = 0
    for event in yaml.parse(text, yaml.CSafeLoader):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("aliases are not allowed: a few can unfold into billions of values")
        level += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if level > MOST_LEVELS:
            raise ValueError(f"lists and mappings are nested more than {MOST_LEVELS} levels deep, the limit")
    return yaml.load(text, yaml.CSafeLoader)  # noqa: S506  (a safe loader, written in C)


def read_yaml(path: Path) -> Any:
    """Return the value of a file as ``load_yaml`` does; raise OSError as well."""
    return load_yaml(read_bytes(path, 4 * MOST_OF_YAML).decode("utf-8-sig"))


def whole_number(text: str) -> int | None:
    """Return the number that some ASCII digits write; None for any other text.

    >>> whole_number("042"), whole_number("-1"), whole_number("²"), whole_number("9" * 5000)
    (42, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None
