"""Limits of what a compressed file unpacks to, in bytes and in values of JSON, counted while it is unpacked."""

from __future__ import annotations

from pathlib import Path
from typing import IO

from memlab.errors import MemlabError
from memlab.runtime.json_limits import ValueBudget

TIMES = 20
"""Times the packed size that a file may unpack to: JSON of conversations packs to a fifth, a bomb to a thousandth."""

AT_LEAST = 50_000_000
"""Bytes that any file may unpack to."""

BYTES_PER_VALUE = 5
"""Packed bytes for each value of JSON: LoCoMo takes 12, LongMemEval 60; a bomb takes a thousandth."""

VALUES_AT_LEAST = 2_000_000
"""Values that any packed file may hold; they take some 200 MB once they are parsed."""

_FIX = "unpack it yourself if you trust it, and give what is in it"


def most_unpacked(packed: int) -> int:
    """Return the bytes that a file of ``packed`` bytes may unpack to.

    >>> most_unpacked(15_000_000), most_unpacked(100)
    (300000000, 50000000)
    """
    return max(AT_LEAST, TIMES * packed)


def most_values(packed: int) -> int:
    """Return the values of JSON that a file of ``packed`` bytes may hold.

    >>> most_values(15_000_000), most_values(100)
    (3000000, 2000000)
    """
    return max(VALUES_AT_LEAST, packed // BYTES_PER_VALUE)


def value_budget(packed: int) -> ValueBudget:
    """Return the budget for the values of a file of ``packed`` bytes."""
    return ValueBudget(most_values(packed), _FIX)


def unpacks_to_more(path: Path, packed: int) -> MemlabError:
    """Return the error for a file of ``packed`` bytes that unpacks to more than it may."""
    return MemlabError(f"its {packed / 1e6:,.1f} MB unpack to more than {most_unpacked(packed) / 1e6:,.0f} MB, the "
                       "limit", where=str(path), fix=_FIX)


class BoundedStream:
    """A stream of unpacked bytes that ends in a MemlabError where ``path`` unpacks to more than it may."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path = stream, path
        self._packed = path.stat().st_size
        self._left = most_unpacked(self._packed)

    def __enter__(self) -> BoundedStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def read(self, size: int = -1) -> bytes:
        """Return at most ``size`` bytes; raise MemlabError once there are more than the limit."""
        piece = self._stream.read(self._left + 1 if size < 0 else min(size, self._left + 1))
        self._left -= len(piece)
        if self._left < 0:
            raise unpacks_to_more(self._path, self._packed)
        return piece
