"""Centroids of one live memory's token vectors, and the centroid of each token: rows of its database.

They spare the first question after a load the training of centroids and the assignment of all tokens. Each row has a
digest; what does not match it is trained or assigned again.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.models.protocols import Floats, Ints


class TokenCodes:
    """The saved codes of one index (``memlab.store.kept.SavedCodes``); where they cannot be saved, a warning says so.

    Args:
        database: That of the memory.
        name: Names the index: all settings that its codes depend on.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._name = hashlib.blake2b(name.encode(), digest_size=16).hexdigest()
        self._trained = b""  # the digest of the centroids, which is part of those of the codes
        self._format = _format(0)

    def centroids(self) -> tuple[Floats, int] | None:
        """Return the centroids (k, dim) and the number of tokens that they were trained for; None if none are saved."""
        rows: list[tuple[Any, ...]] = self._rows("SELECT trained_for, dim, digest, content FROM token_centroids "
                                                 "WHERE name = ?")
        for trained_for, dim, digest, content in rows:
            if _numbers(trained_for, dim) and isinstance(content, bytes) and len(content) % (4 * dim) == 0:
                vectors = np.frombuffer(content, "<f4").reshape(-1, dim).copy()  # PyTorch wants to be able to write
                if len(vectors) and digest == _digest(trained_for, dim, content):
                    self._trained, self._format = digest, _format(len(vectors))
                    return vectors, trained_for
        return None

    def codes(self) -> tuple[NDArray[np.uint64], Ints, NDArray[np.unsignedinteger]]:
        """Return the keys of the texts (n, 2), where each starts (n + 1,), and the centroids of their tokens (t,).

        Only those of the centroids that were read or saved last are returned.
        """
        rows: list[tuple[Any, ...]] = self._rows("SELECT key, digest, content FROM token_codes WHERE name = ?")
        intact = [(key, content) for key, digest, content in rows
                  if isinstance(key, bytes) and isinstance(content, bytes)
                  and digest == _digest(self._trained, key, content)]
        lengths = [len(content) // self._format.itemsize for _, content in intact]
        return (np.frombuffer(b"".join(key for key, _ in intact), np.uint64).reshape(-1, 2),
                np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
                np.frombuffer(b"".join(content for _, content in intact), self._format))

    def replace(self, centroids: Floats, trained_for: int) -> None:
        """Save new centroids (k, dim), and drop all codes."""
        content, dim = np.ascontiguousarray(centroids, "<f4").tobytes(), centroids.shape[1]
        self._trained, self._format = _digest(trained_for, dim, content), _format(len(centroids))

        def write() -> None:
            self._database.run("DELETE FROM token_codes WHERE name = ?", (self._name,))
            self._database.run("INSERT OR REPLACE INTO token_centroids VALUES (?, ?, ?, ?, ?)",
                               (self._name, trained_for, dim, self._trained, content))

        self._save(write)

    def add(self, keys: NDArray[np.uint64], starts: Ints, codes: NDArray[np.integer]) -> None:
        """Save the codes of more texts: keys (n, 2), starts (n + 1,), codes (t,)."""
        whole = codes.astype(self._format)
        parts = [whole[start:end].tobytes() for start, end in zip(starts, starts[1:])]
        self._save(lambda: self._database.run("INSERT OR REPLACE INTO token_codes VALUES (?, ?, ?, ?)", *(
            (self._name, key.tobytes(), _digest(self._trained, key.tobytes(), part), part)
            for key, part in zip(keys, parts))))

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._database.rows(query, self._name)
        return rows

    def _save(self, write: Callable[[], None]) -> None:
        if self._database.read_only:
            return
        try:
            with self._database.transaction(durable=False):
                write()
        except MemlabError as error:
            warnings.warn(f"the index of token vectors is not saved, and made again when the memory is loaded: {error}",
                          stacklevel=3)


def forget_codes(database: Database) -> None:
    """Within a transaction, delete all centroids and codes."""
    database.run("DELETE FROM token_codes", ())
    database.run("DELETE FROM token_centroids", ())


def _format(centroids: int) -> np.dtype[np.unsignedinteger]:
    """Return the format of the codes of so many centroids."""
    return np.dtype("<u2" if centroids <= 1 << 16 else "<u4")


def _numbers(*values: object) -> bool:
    return all(type(value) is int and 0 < value < 2**40 for value in values)


def _digest(*parts: object) -> bytes:
    total = hashlib.blake2b(digest_size=8)
    for part in parts:
        total.update(part if isinstance(part, bytes) else str(part).encode() + b";")
    return total.digest()
