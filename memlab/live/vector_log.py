"""The store of one live memory: vectors are rows of one file, and an addition writes its own alone.

The store of experiments writes a segment per call and indexes all segments again, which suits few large calls; ten
thousand additions of a few texts each would become slower and slower. Here a vector is a row of a file
(``memlab.live.vector_file``), and its key an entry of a dictionary. The memory's lock admits one process at a time.
"""

from __future__ import annotations

import heapq
import shutil
import warnings
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.live.token_codes import TokenCodes, forget_codes
from memlab.live.token_files import FOLDER as TOKENS
from memlab.live.token_files import clear_free_tokens, forget_other_tokens
from memlab.live.token_log import TokenLog
from memlab.live.vector_file import FOLDER, VectorFile, clear_free_rows, forget_other_keys
from memlab.models.protocols import Floats, Ints, Role, TokenMatcher
from memlab.runtime.files import os_errors
from memlab.store.index import SegmentIndex
from memlab.store.kept import SavedCodes
from memlab.store.segments import key_columns
from memlab.store.store import KEYS, Store
from memlab.store.token_index import TokenIndex
from memlab.store.token_vectors import Precision

BLOCK = 4096  # rows that are allocated at once: 6 MB for vectors of 384 numbers


class VectorLog(SegmentIndex):
    """The values of one fingerprint, in memory, and on disk if there is a database."""

    def __init__(self, path: Path, keys: list[str], identity: str, database: Database | None) -> None:
        self.path, self.keys, self.identity, self.database = path, keys, identity, database
        self._at: dict[bytes, int] = {}
        self._blocks: list[Floats] = []
        self._rows = 0
        self._free: list[int] = []  # a heap of the rows below ``_rows`` that hold nothing
        self._file = VectorFile.of(database, path) if database else None
        if self._file:
            found, values = self._file.load()
            self._rows = 1 + max((row for _, row in found), default=-1)
            self._hold(dict(found), values[: self._rows])

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """Return ``wanted`` (the key columns, and ``at``) with segment and row, nulls where a key is unknown."""
        at = pl.Series("row", [self._at.get(key) for key in keys_of(wanted.select(self.keys))], pl.Int64)
        return wanted.with_columns((at // BLOCK).alias("segment"), (at % BLOCK).alias("row"))

    def read(self, located: pl.DataFrame) -> Iterator[tuple[Ints, Floats]]:
        """Yield (at (b,), values (b, ...)) for each block with some of the keys."""
        for (block,), rows in located.partition_by("segment", as_dict=True).items():
            yield rows["at"].to_numpy(), self._blocks[block][rows["row"].to_numpy()]

    def width(self) -> int | None:
        """Return the length of a vector; None if there is none yet."""
        return self._blocks[0].shape[1] if self._blocks else None

    def add(self, keys: pl.DataFrame, values: Floats) -> None:
        """Store rows: keys (n rows) and values (n,) or (n, dim); if the disk cannot be written, in memory alone."""
        names = keys_of(keys)
        rows = [heapq.heappop(self._free) for _ in range(min(len(names), len(self._free)))]
        new = range(self._rows, self._rows + len(names) - len(rows))
        self._rows += len(new)
        rows += new
        for row in rows:
            if row // BLOCK == len(self._blocks):
                self._blocks.append(np.zeros((BLOCK, *values.shape[1:]), np.float32))
        for block in {row // BLOCK for row in rows}:
            here = [n for n, row in enumerate(rows) if row // BLOCK == block]
            self._blocks[block][[rows[n] % BLOCK for n in here]] = values[here]
        self._at.update(zip(names, rows))
        if self.database and not self.database.read_only:
            self._file = self._file or VectorFile(self.database, self.path, values.shape[1])
            try:
                self._file.write(names, rows, values, self.identity)
            except MemlabError as error:
                warnings.warn(f"vectors are not saved, and computed again when the memory is loaded: {error}",
                              stacklevel=2)

    def forget_other_keys(self, kept: set[bytes]) -> None:
        """Forget all keys but these, in memory."""
        for key in self._at.keys() - kept:
            row = self._at.pop(key)
            self._blocks[row // BLOCK][row % BLOCK] = 0
        self._rows = 1 + max(self._at.values(), default=-1)
        self._free = sorted(set(range(self._rows)) - set(self._at.values()))
        del self._blocks[-(-self._rows // BLOCK):]

    def _hold(self, at: dict[bytes, int], values: Floats) -> None:
        self._at = at
        self._free = sorted(set(range(self._rows)) - set(at.values()))
        for start in range(0, len(values), BLOCK):
            block = np.zeros((BLOCK, values.shape[1]), np.float32)
            part = values[start : start + BLOCK]
            block[: len(part)] = part
            self._blocks.append(block)


class LiveStore(Store):
    """A store with a ``VectorLog`` per fingerprint: on disk for documents, in memory for what belongs to a question.

    Completions are lines, as in every store. On opening, what a killed process left in free rows is overwritten.
    """

    shares_results: ClassVar[bool] = False

    def __init__(self, database: Database) -> None:
        super().__init__(database.folder / "store")
        self._database = database
        self._token_logs: dict[Path, TokenLog] = {}
        self._kept: dict[Hashable, Any] = {}
        if not database.read_only:
            self.clear_forgotten()

    def _index(self, kind: str, model: Any, role: Role | None = None) -> SegmentIndex:
        path, identity = self._fingerprint(kind, model, role)
        if path not in self._indexes:
            on_disk = (kind, role) == ("vectors", "document")
            self._indexes[path] = VectorLog(path, KEYS[kind], identity, self._database if on_disk else None)
        return self._indexes[path]

    def _token_index(self, matcher: TokenMatcher, role: Role, precision: Precision) -> TokenIndex:
        path, identity = self._token_fingerprint(matcher, role, precision)
        if path not in self._token_logs:
            database = self._database if role == "document" else None
            self._token_logs[path] = TokenLog(path, identity, precision, database)
        return self._token_logs[path]

    def kept(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is kept under a key for as long as the memory is loaded, made by ``make`` at first."""
        if key not in self._kept:
            self._kept[key] = make()
        return self._kept[key]

    def token_codes(self, name: str) -> SavedCodes:
        """Return what is saved of an index of token vectors; the name says all that its codes depend on."""
        return TokenCodes(self._database, name)

    def check_files(self) -> None:
        """Raise MemlabError if somebody has changed the files of token vectors."""
        for log in list(self._token_logs.values()):  # another question may add one
            log.check_files()

    def close(self) -> None:
        """Let go of all files and vectors."""
        self._token_logs, self._indexes, self._kept = {}, {}, {}

    def forget_questions(self) -> None:
        """Drop the vectors and pair scores of earlier questions."""
        self._token_logs = {path: log for path, log in self._token_logs.items() if log.on_disk}
        self._indexes = {path: log for path, log in self._indexes.items() if getattr(log, "database", None)}

    def forget_indexes(self) -> None:
        """Remove the search indexes, since their vectors have changed."""
        with os_errors("the search indexes cannot be removed", self.root), suppress(FileNotFoundError):
            if not self._database.read_only:
                shutil.rmtree(self.root / "indexes")

    def forget_other_texts(self, hashes: pl.Series) -> None:
        """Within a transaction, free the vectors of all texts but those with these hashes, of every model.

        Texts that another pipeline has made of the sessions are among the others: they are encoded again when needed.
        ``clear_forgotten`` is to follow the commit.
        """
        kept = keys_of(pl.DataFrame(key_columns(hashes), schema=dict.fromkeys(KEYS["vectors"], pl.UInt64)))
        forget_other_keys(self._database, set(kept))
        forget_other_tokens(self._database, set(kept))
        forget_codes(self._database)
        for tokens in self._token_logs.values():
            tokens.forget_other_keys(set(kept))
        for log in self._indexes.values():
            if isinstance(log, VectorLog) and log.database:
                log.forget_other_keys(set(kept))
        for kept_object in self._kept.values():
            kept_object.forget_other_texts(hashes)

    def clear_forgotten(self) -> None:
        """Overwrite the vectors that were forgotten, and shorten their files."""
        clear_free_rows(self._database, self._database.folder / FOLDER)
        clear_free_tokens(self._database, self._database.folder / TOKENS)


def keys_of(keys: pl.DataFrame) -> list[bytes]:
    """Return each row's key columns as bytes."""
    raw, size = keys.to_numpy(order="c").astype(np.uint64).tobytes(), 8 * keys.width
    return [raw[i : i + size] for i in range(0, len(raw), size)]
