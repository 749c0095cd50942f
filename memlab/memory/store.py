"""The store of one live memory.

The vectors and token vectors of documents are segments in the memory's folder, which belongs to one process: additions
are merged, and what is forgotten is removed. What belongs to a question leaves with it. Completions are lines, as in
every store. The centroids and codes of token vectors (``memlab.stages.search.token_lists``) have a file, so that the
first
question after a load need not train them; forgetting removes it, since a centroid may lie on a single vector.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Hashable, Iterable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

import polars as pl

from memlab.memory.database import Database
from memlab.models.protocols import Role
from memlab.pipeline.tables import Tables
from memlab.store.index import SegmentIndex
from memlab.store.segment import DAMAGED, key_columns, store_errors
from memlab.store.store import Store
from memlab.support.files import TEMPORARY, disk_faults
from memlab.support.latest import Latest

CACHED = 32
"""Pools and units that are cached: one for all sessions, and one for each of the latest filters."""

CODES = "codes"
"""Folder of the centroids and codes of token vectors."""

ON_DISK = ("vectors", "tokens")
"""Kinds whose segments of documents are on the disk."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_turn(method: Callable[Concatenate[Any, _P], _R]) -> Callable[Concatenate[Any, _P], _R]:
    """Run a method while no other question of the memory runs one."""
    @wraps(method)
    def locked(self: Any, *args: _P.args, **options: _P.kwargs) -> _R:
        with self._turns:
            return method(self, *args, **options)
    return locked


class LiveStore(Store):
    """The store of a memory. On opening, what a killed process left half written is removed.

    Questions take turns at the vectors and at the models that make them, since a model's tokenizer serves one thread at
    a time; chat models answer several.
    """

    shares_results: ClassVar[bool] = False
    caches_indexes: ClassVar[bool] = True

    vectors = _in_turn(Store.vectors)
    stored_vectors = _in_turn(Store.stored_vectors)
    dim = _in_turn(Store.dim)
    truncated = _in_turn(Store.truncated)
    pair_scores = _in_turn(Store.pair_scores)
    token_vectors = _in_turn(Store.token_vectors)

    def __init__(self, database: Database) -> None:
        super().__init__(database.folder / "store")
        self._turns = RLock()
        self._cached: dict[Hashable, Any] = {}
        self._made = Latest[Any](CACHED)
        with store_errors(self.root):
            self.root.mkdir(mode=0o700, exist_ok=True)
            for end in (TEMPORARY, DAMAGED):
                for path in self.root.rglob(f"*{end}"):
                    if path.is_file():
                        path.unlink()

    @_in_turn
    def index(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the index cached under a key while the memory is loaded; ``make`` builds it once."""
        if key not in self._cached:
            self._cached[key] = make()
        return self._cached[key]

    @_in_turn
    def cached(self, tables: Tables, names: Iterable[str], key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what ``make`` makes of some tables, of which the latest are cached until the sessions change."""
        return self._made.get((key, tables.digest(names)), make)

    def codes_file(self, name: str) -> Path | None:
        """Return the file of an index of token vectors; the name says all that its codes depend on."""
        return self.root / CODES / hashlib.blake2b(name.encode(), digest_size=16).hexdigest()

    @_in_turn
    def forget_questions(self) -> None:
        """Drop the vectors and pair scores of questions."""
        self._indexes = {path: index for path, index in self._indexes.items() if index.on_disk}

    def check_files(self) -> None:
        """Raise MemlabError if somebody has cut a segment."""
        for index in list(self._indexes.values()):  # another question may add one
            if index.on_disk:
                index.check_files()

    def close(self) -> None:
        """Let go of all files and vectors."""
        self._indexes, self._cached = {}, {}
        self._made.clear()

    def forget_indexes(self) -> None:
        """Remove the search indexes and what else was made of earlier tables."""
        self._made.clear()
        self._remove("indexes")

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
        self._remove(CODES)

    def _remove(self, folder: str) -> None:
        with disk_faults(self.root, "the search indexes cannot be removed"), suppress(FileNotFoundError):
            shutil.rmtree(self.root / folder)

    def _open(self, kind: str, role: Role | None, path: Path, identity: str) -> SegmentIndex:
        if role != "document" or kind not in ON_DISK:
            return SegmentIndex(None)
        return SegmentIndex(path, identity, own=True)
