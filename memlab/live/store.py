"""The store of one live memory, that of one question to it, and codes of token vectors.

Codes are the centroids of token vectors, and the centroid of each token: rows of the database. They spare the first
question after a load the training of centroids and the assignment of all tokens. Each row has a digest; what does not
match it is trained or assigned again.

The vectors and token vectors of documents are segments in the memory's folder, which belongs to one process: additions
are merged, and what is forgotten is removed. What belongs to a question leaves with it. Completions are lines, as in
every store.
"""

from __future__ import annotations

import hashlib
import shutil
import warnings
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.models.protocols import Floats, Ints, Role
from memlab.runtime.files import TEMPORARY, disk_faults
from memlab.store.index import SegmentIndex
from memlab.store.segment import DAMAGED, key_columns, store_errors
from memlab.store.store import SavedCodes, Store
from memlab.tables import Tables


class TokenCodes:
    """The saved codes of one index (``memlab.store.store.SavedCodes``); where they cannot be saved, a warning says so.

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


def damaged_codes(database: Database) -> bool:
    """Return whether some centroids or codes do not match their digest."""
    trained = {}
    centroids: list[tuple[Any, ...]] = database.rows("SELECT name, trained_for, dim, digest, content FROM "
                                                     "token_centroids")
    for name, trained_for, dim, digest, content in centroids:
        if digest == _digest(trained_for, dim, content):
            trained[name] = digest
    codes: list[tuple[Any, ...]] = database.rows("SELECT name, key, digest, content FROM token_codes")
    return len(trained) < len(centroids) or any(
        name not in trained or digest != _digest(trained[name], key, content) for name, key, digest, content in codes)


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


ON_DISK = ("vectors", "tokens")
"""Kinds whose segments of documents are on the disk."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class LiveStore(Store):
    """The store of a memory. On opening, what a killed process left half written is removed."""

    shares_results: ClassVar[bool] = False
    caches_indexes: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        super().__init__(database.folder / "store")
        self._database = database
        self._cached: dict[Hashable, Any] = {}
        if not database.read_only:
            with store_errors(self.root):
                self.root.mkdir(mode=0o700, exist_ok=True)
                for end in (TEMPORARY, DAMAGED):
                    for path in self.root.rglob(f"*{end}"):
                        if path.is_file():
                            path.unlink()

    def index(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the index cached under a key while the memory is loaded; ``make`` builds it once."""
        if key not in self._cached:
            self._cached[key] = make()
        return self._cached[key]

    def token_codes(self, name: str) -> SavedCodes:
        """Return what is saved of an index of token vectors; the name says all that its codes depend on."""
        return TokenCodes(self._database, name)

    def check_files(self) -> None:
        """Raise MemlabError if somebody has cut a segment."""
        for index in list(self._indexes.values()):  # another question may add one
            if index.on_disk:
                index.check_files()

    def close(self) -> None:
        """Let go of all files and vectors."""
        self._indexes, self._cached = {}, {}

    def forget_questions(self) -> None:
        """Drop the vectors and pair scores of earlier questions."""
        self._indexes = {path: index for path, index in self._indexes.items() if index.on_disk}

    def forget_indexes(self) -> None:
        """Remove the search indexes, since their vectors have changed."""
        with disk_faults(self.root, "the search indexes cannot be removed"), suppress(FileNotFoundError):
            if not self._database.read_only:
                shutil.rmtree(self.root / "indexes")

    def keep(self, texts: pl.Series) -> None:
        """Forget the vectors of all texts but those with these ids, of every model, on the disk too.

        Texts that another pipeline has made of the sessions are among the others: they are encoded again when needed.
        """
        with store_errors(self.root):
            folders = [path for kind in ON_DISK for path in self.root.glob(f"{kind}/*") if path.is_dir()]
        unopened = [SegmentIndex(path, own=True) for path in folders if path not in self._indexes]
        for index in [*unopened, *self._indexes.values()]:
            if index.on_disk:
                index.keep(key_columns(texts))
        for cached in self._cached.values():
            cached.forget(texts)

    def _open(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:
        if role != "document" or kind not in ON_DISK:
            return SegmentIndex(None)
        return SegmentIndex(path, identity, own=True, writable=not self._database.read_only)


def _in_turn(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """Run a method of the store while no other question of the memory runs one."""
    @wraps(method)
    def locked(self: Any, *args: _P.args, **options: _P.kwargs) -> _R:
        with self._turns:
            return method(self, *args, **options)
    return locked


class QuestionStore(Store):
    """A memory's store for one question: what belongs to the question leaves with it.

    Vectors of documents, cached indexes and replies are the memory's. Questions take turns at the vectors and
    at the models that make them, since a model's tokenizer serves one thread at a time; chat models answer several.

    Args:
        memory: The store of the memory.
        turns: The lock that all questions of the memory share.
        whole: The tables of which the filter of the question has left a part; None without a filter.
    """

    shares_results: ClassVar[bool] = False
    caches_indexes: ClassVar[bool] = True

    def __init__(self, memory: LiveStore, turns: RLock, whole: Tables | None) -> None:
        super().__init__(memory.root)
        self.whole = whole
        self._memory, self._turns = memory, turns
        self.made, self.found, self._completions = memory.made, memory.found, memory._completions

    vectors = _in_turn(Store.vectors)
    stored_vectors = _in_turn(Store.stored_vectors)
    dim = _in_turn(Store.dim)
    truncated = _in_turn(Store.truncated)
    pair_scores = _in_turn(Store.pair_scores)
    token_vectors = _in_turn(Store.token_vectors)

    def index(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the index that the memory caches under a key; ``make`` builds it once."""
        with self._turns:
            return self._memory.index(key, make)

    def token_codes(self, name: str) -> SavedCodes:
        """Return what the memory has saved of an index of token vectors."""
        return self._memory.token_codes(name)

    def _open_index(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:
        if role == "document" and kind in ON_DISK:
            return self._memory._open_index(kind, role, path, identity)
        return super()._open_index(kind, role, path, identity)

    def _open(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:  # noqa: ARG002
        return SegmentIndex(None)
