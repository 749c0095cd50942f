"""JSON lines that begin with a digest of their content, so that damage is recognised line by line."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import IO, Any

MOST_BYTES = 1 << 27
"""Bytes of a line that are read: 134 MB, more than any reply."""

_START = b'{"check": "'
_DIGITS = 16
_CONTENT = len(_START) + _DIGITS + len(b'", ')


def encode(row: Mapping[str, Any]) -> bytes:
    """Return a row as one line; ASCII alone, so that no character of a text can end it or be changed by an encoding."""
    content = json.dumps(row, ensure_ascii=True)[1:].encode()
    return _START + _digest(content) + b'", ' + content + b"\n"


def lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file up to one that has no end within ``MOST_BYTES``, which is yielded as it begins."""
    while line := file.readline(MOST_BYTES):
        yield line
        if not line.endswith(b"\n"):
            return


def decode(line: bytes) -> dict[str, Any] | None:
    """Return the row of a line; None if the line is damaged, has no end, or is no JSON object.

    >>> decode(encode({"id": 0})), decode(encode({"id": 0})[:-1])
    ({'id': 0}, None)
    """
    content = line[_CONTENT:-1]
    if not (line.startswith(_START) and line.endswith(b"\n") and line[len(_START):][:_DIGITS] == _digest(content)):
        return None
    try:
        return dict(json.loads(b"{" + content))
    except (ValueError, RecursionError):
        return None


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest().encode()
