"""The store of one live memory: vectors in one growing file, so that a small addition costs what it is.

The store that experiments share writes a segment a call and indexes all segments anew, which suits few large calls;
ten thousand additions of a few texts each would take longer and longer. Here a vector is a record at the end of a file,
and its key an entry of a dictionary. One process at a time, which the memory's lock sees to.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints, Role
from memlab.runtime.files import write_all
from memlab.store.index import SegmentIndex
from memlab.store.segments import key_columns, store_errors, write_identity
from memlab.store.store import KEYS, Store

BLOCK = 4096  # rows that are allotted at once: 6 MB of 384 numbers each
_SUFFIX = ".rows"


class VectorLog(SegmentIndex):
    """One fingerprint's values, in memory, and on disk if it is kept.

    The file is named by the length of a value; a record is key, value and 8 bytes of digest. A record that does not
    match its digest (cut off by the end of its process, damaged, or forgotten) is passed over, and made anew if asked.
    """

    def __init__(self, path: Path, keys: list[str], identity: str, kept: bool) -> None:
        self.path, self.keys, self.identity, self.kept = path, keys, identity, kept
        self._at: dict[bytes, int] = {}
        self._blocks: list[Floats] = []
        self._rows = 0
        if kept:
            self._load()

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """Return ``wanted`` (the key columns, and ``at``) with segment and row, nulls where a key is unknown."""
        at = pl.Series("row", [self._at.get(key) for key in _keys(wanted.select(self.keys))], pl.Int64)
        return wanted.with_columns((at // BLOCK).alias("segment"), (at % BLOCK).alias("row"))

    def read(self, located: pl.DataFrame) -> Iterator[tuple[Ints, Floats]]:
        """Yield (at (b,), values (b, ...)) for each block that holds keys."""
        for (block,), rows in located.partition_by("segment", as_dict=True).items():
            yield rows["at"].to_numpy(), self._blocks[block][rows["row"].to_numpy()]

    def width(self) -> int | None:
        """Return how many numbers a vector has; None while none is held."""
        return self._blocks[0].shape[1] if self._blocks else None

    def add(self, keys: pl.DataFrame, values: Floats) -> None:
        """Store rows: keys (n rows) and values (n,) or (n, dim)."""
        names = _keys(keys)
        if self.kept:
            self._write(names, values)
        self._keep(names, values)

    def forget(self, keys: pl.DataFrame) -> None:
        """Overwrite these keys and their values, in memory and on disk; those unknown are passed over."""
        gone = [row for key in _keys(keys) if (row := self._at.pop(key, None)) is not None]
        for row in gone:
            self._blocks[row // BLOCK][row % BLOCK] = 0
        if gone:
            record = self._record(self._blocks[0].shape[1])
            with store_errors(self.path), self._file(self._blocks[0].shape[1]).open("r+b") as file:
                for row in gone:
                    file.seek(row * record.itemsize)
                    file.write(bytes(record.itemsize))
                file.flush()
                os.fsync(file.fileno())

    def _keep(self, names: list[bytes], values: Floats) -> None:
        start = self._rows
        for name in names:
            self._at[name] = self._rows
            self._rows += 1
        while len(self._blocks) * BLOCK < self._rows:
            self._blocks.append(np.zeros((BLOCK, *values.shape[1:]), np.float32))
        while start < self._rows:
            row, n = start % BLOCK, min(BLOCK - start % BLOCK, self._rows - start)
            done = start - self._rows + len(names)
            self._blocks[start // BLOCK][row : row + n] = values[done : done + n]
            start += n

    def _file(self, dim: int) -> Path:
        return self.path / f"{dim}{_SUFFIX}"

    def _record(self, dim: int) -> np.dtype[np.void]:
        return np.dtype([("key", "V", 8 * len(self.keys)), ("value", "<f4", (dim,)), ("check", "<u8")])

    def _write(self, names: list[bytes], values: Floats) -> None:
        rows = np.zeros(len(names), self._record(values.shape[1]))
        rows["key"] = np.frombuffer(b"".join(names), rows["key"].dtype)
        rows["value"] = values
        rows["check"] = _checks(rows)
        write_identity(self.path, self.identity)
        with store_errors(self.path), self._file(values.shape[1]).open("ab", buffering=0) as file:
            file.truncate(self._rows * rows.itemsize)  # what a full disk left of an earlier record
            write_all(file, rows.tobytes())  # not synced: what a power failure takes is made anew

    def _load(self) -> None:
        for path in self.path.glob(f"*{_SUFFIX}"):
            record = self._record(int(path.stem))
            for start in range(0, path.stat().st_size // record.itemsize, BLOCK):
                rows = np.fromfile(path, record, BLOCK, offset=start * record.itemsize)
                names = _cut(rows["key"].tobytes(), 8 * len(self.keys))
                self._keep(names, rows["value"])
                for at in np.flatnonzero(rows["check"] != _checks(rows)).tolist():
                    if self._at.get(names[at]) == start + at:
                        del self._at[names[at]]


class LiveStore(Store):
    """Vectors of what was said are kept on a ``VectorLog``; what belongs to one question is not kept beyond the next.

    Completions lie in lines, as in every store.
    """

    def _index(self, kind: str, model: Any, role: Role | None = None) -> SegmentIndex:
        path, identity = self._fingerprint(kind, model, role)
        if path not in self._indexes:
            kept = (kind, role) == ("vectors", "document")
            self._indexes[path] = VectorLog(path, KEYS[kind], identity, kept)
        return self._indexes[path]

    def forget_questions(self) -> None:
        """Drop what earlier questions had made: their vectors and pair scores."""
        self._indexes = {path: shelf for path, shelf in self._indexes.items() if getattr(shelf, "kept", False)}

    def forget_indexes(self) -> None:
        """Remove the indexes over vectors that have changed since."""
        shutil.rmtree(self.root / "indexes", ignore_errors=True)

    def forget_texts(self, hashes: pl.Series) -> None:
        """Overwrite the vectors of texts with these hashes, whatever model made them, also one not in use now."""
        keys = pl.DataFrame(key_columns(hashes), schema=dict.fromkeys(KEYS["vectors"], pl.UInt64))
        for path in (self.root / "vectors").glob("*/"):
            shelf = self._indexes.get(path) or VectorLog(path, KEYS["vectors"], "", kept=True)
            if isinstance(shelf, VectorLog) and shelf.kept:
                shelf.forget(keys)


def _keys(keys: pl.DataFrame) -> list[bytes]:
    """Return each row's key columns as bytes."""
    return _cut(keys.to_numpy(order="c").astype(np.uint64).tobytes(), 8 * keys.width)


def _cut(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


def _checks(rows: NDArray[np.void]) -> NDArray[np.uint64]:
    """Digest key and value of every record. (n,)"""
    size = rows.dtype.itemsize
    sums = [hashlib.blake2b(row[:-8], digest_size=8).digest() for row in _cut(rows.tobytes(), size)]
    return np.frombuffer(b"".join(sums), "<u8")
