"""The store of one live memory, and that of one question to it.

The vectors and token vectors of documents are segments in the memory's folder, which belongs to one process: additions
are merged, and what is forgotten is removed. What belongs to a question leaves with it. Completions are lines, as in
every store.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import polars as pl

from memlab.live.database import Database
from memlab.live.token_codes import TokenCodes
from memlab.models.protocols import Role
from memlab.runtime.files import TEMPORARY, os_errors
from memlab.store.index import SegmentIndex
from memlab.store.kept import SavedCodes
from memlab.store.segment import DAMAGED, key_columns, store_errors
from memlab.store.store import Store

ON_DISK = ("vectors", "tokens")
"""Kinds whose segments of documents are on the disk."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


class LiveStore(Store):
    """The store of a memory. On opening, what a killed process left half written is removed."""

    shares_results: ClassVar[bool] = False
    keeps_indexes: ClassVar[bool] = True

    def __init__(self, database: Database) -> None:
        super().__init__(database.folder / "store")
        self._database = database
        self._kept: dict[Hashable, Any] = {}
        if not database.read_only:
            with store_errors(self.root):
                self.root.mkdir(mode=0o700, exist_ok=True)
                for end in (TEMPORARY, DAMAGED):
                    for path in self.root.rglob(f"*{end}"):
                        if path.is_file():
                            path.unlink()

    def index(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the index that is kept under a key for as long as the memory is loaded, made by ``make`` at first."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

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
        self._indexes, self._kept = {}, {}

    def forget_questions(self) -> None:
        """Drop the vectors and pair scores of earlier questions."""
        self._indexes = {path: index for path, index in self._indexes.items() if index.on_disk}

    def forget_indexes(self) -> None:
        """Remove the search indexes, since their vectors have changed."""
        with os_errors("the search indexes cannot be removed", self.root), suppress(FileNotFoundError):
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
        for kept in self._kept.values():
            kept.forget(texts)

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

    Vectors of documents, objects that are kept, and replies are the memory's. Questions take turns at the vectors and
    at the models that make them, since a model's tokenizer serves one thread at a time; chat models answer several.

    Args:
        memory: The store of the memory.
        turns: The lock that all questions of the memory share.
    """

    shares_results: ClassVar[bool] = False
    keeps_indexes: ClassVar[bool] = True

    def __init__(self, memory: LiveStore, turns: RLock) -> None:
        super().__init__(memory.root)
        self._memory, self._turns = memory, turns
        self.made, self.found, self._completions = memory.made, memory.found, memory._completions

    vectors = _in_turn(Store.vectors)
    stored_vectors = _in_turn(Store.stored_vectors)
    dim = _in_turn(Store.dim)
    truncated = _in_turn(Store.truncated)
    pair_scores = _in_turn(Store.pair_scores)
    token_vectors = _in_turn(Store.token_vectors)

    def index(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the index that the memory keeps under a key, made by ``make`` at first."""
        with self._turns:
            return self._memory.index(key, make)

    def token_codes(self, name: str) -> SavedCodes:
        """Return what the memory has saved of an index of token vectors."""
        return self._memory.token_codes(name)

    def _opened(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:
        if role == "document" and kind in ON_DISK:
            return self._memory._opened(kind, role, path, identity)
        return super()._opened(kind, role, path, identity)

    def _open(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:  # noqa: ARG002
        return SegmentIndex(None)
