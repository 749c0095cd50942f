"""A cache of the most recently used values (LRU)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Latest(Generic[_T]):
    """The values of the ``most`` keys that were asked for last. Not safe for threads.

    >>> squares = Latest[int](2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (2, 3, 2, 4)], 3 in squares
    ([4, 9, 4, 16], False)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: dict[Hashable, _T] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def get(self, key: Hashable, make: Callable[[], _T]) -> _T:
        """Return the value of a key, which ``make`` makes if it is not there."""
        value = self._values.pop(key) if key in self._values else make()
        self._values[key] = value  # the last one now
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]
        return value

    def clear(self) -> None:
        """Forget all values."""
        self._values = {}
