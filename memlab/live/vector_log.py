"""The store of one live memory: vectors are appended to one file, so the cost of an addition depends on its size alone.

The store of experiments writes a segment per call and indexes all segments again, which suits few large calls; ten
thousand additions of a few texts each would become slower and slower. Here a vector is a record at the end of a file,
and its key an entry of a dictionary. The memory's lock admits one process at a time.
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

BLOCK = 4096  # rows that are allocated at once: 6 MB for vectors of 384 numbers
_SUFFIX = ".rows"


class VectorLog(SegmentIndex):
    """The values of one fingerprint, in memory, and on disk if ``on_disk``.

    The file is named by the length of a value; a record is key, value and 8 bytes of digest. A record that does not
    match its digest (truncated, damaged, or forgotten) is ignored, so its value is computed again when it is needed.
    """

    def __init__(self, path: Path, keys: list[str], identity: str, on_disk: bool) -> None:
        self.path, self.keys, self.identity, self.on_disk = path, keys, identity, on_disk
        self._at: dict[bytes, int] = {}
        self._blocks: list[Floats] = []
        self._rows = 0
        if on_disk:
            self._load()

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """Return ``wanted`` (the key columns, and ``at``) with segment and row, nulls where a key is unknown."""
        at = pl.Series("row", [self._at.get(key) for key in _keys(wanted.select(self.keys))], pl.Int64)
        return wanted.with_columns((at // BLOCK).alias("segment"), (at % BLOCK).alias("row"))

    def read(self, located: pl.DataFrame) -> Iterator[tuple[Ints, Floats]]:
        """Yield (at (b,), values (b, ...)) for each block with some of the keys."""
        for (block,), rows in located.partition_by("segment", as_dict=True).items():
            yield rows["at"].to_numpy(), self._blocks[block][rows["row"].to_numpy()]

    def width(self) -> int | None:
        """Return the length of a vector; None if there is none yet."""
        return self._blocks[0].shape[1] if self._blocks else None

    def add(self, keys: pl.DataFrame, values: Floats) -> None:
        """Store rows: keys (n rows) and values (n,) or (n, dim)."""
        names = _keys(keys)
        if self.on_disk:
            self._write(names, values)
        self._hold(names, values)

    def forget(self, keys: pl.DataFrame) -> None:
        """Overwrite these keys and their values, in memory and on disk; unknown keys are ignored."""
        rows = [row for key in _keys(keys) if (row := self._at.pop(key, None)) is not None]
        for row in rows:
            self._blocks[row // BLOCK][row % BLOCK] = 0
        if rows:
            dim = self._blocks[0].shape[1]
            size = self._record(dim).itemsize
            with store_errors(self.path), self._file(dim).open("r+b") as file:
                for row in rows:
                    file.seek(row * size)
                    file.write(bytes(size))
                file.flush()
                os.fsync(file.fileno())

    def _hold(self, names: list[bytes], values: Floats) -> None:
        done = 0
        while done < len(names):
            if self._rows % BLOCK == 0:
                self._blocks.append(np.zeros((BLOCK, *values.shape[1:]), np.float32))
            row = self._rows % BLOCK
            part = values[done : done + BLOCK - row]
            self._blocks[-1][row : row + len(part)] = part
            self._at.update(zip(names[done : done + len(part)], range(self._rows, self._rows + len(part))))
            self._rows += len(part)
            done += len(part)

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
            file.truncate(self._rows * rows.itemsize)  # the rest of a record that a full disk cut off
            write_all(file, rows.tobytes())  # not synced: vectors lost in a power failure are computed again

    def _load(self) -> None:
        for path in self.path.glob(f"*{_SUFFIX}"):
            record = self._record(int(path.stem))
            for start in range(0, path.stat().st_size // record.itemsize, BLOCK):
                rows = np.fromfile(path, record, BLOCK, offset=start * record.itemsize)
                names = _cut(rows["key"].tobytes(), 8 * len(self.keys))
                self._hold(names, rows["value"])
                for at in np.flatnonzero(rows["check"] != _checks(rows)).tolist():
                    if self._at.get(names[at]) == start + at:
                        del self._at[names[at]]


class LiveStore(Store):
    """A store with a ``VectorLog`` per fingerprint: on disk for documents, in memory for what belongs to a question.

    Completions are lines, as in every store.
    """

    def _index(self, kind: str, model: Any, role: Role | None = None) -> SegmentIndex:
        path, identity = self._fingerprint(kind, model, role)
        if path not in self._indexes:
            on_disk = (kind, role) == ("vectors", "document")
            self._indexes[path] = VectorLog(path, KEYS[kind], identity, on_disk)
        return self._indexes[path]

    def forget_questions(self) -> None:
        """Drop the vectors and pair scores of earlier questions."""
        self._indexes = {path: log for path, log in self._indexes.items() if getattr(log, "on_disk", False)}

    def forget_indexes(self) -> None:
        """Remove the search indexes, since their vectors have changed."""
        shutil.rmtree(self.root / "indexes", ignore_errors=True)

    def forget_texts(self, hashes: pl.Series) -> None:
        """Overwrite the vectors of texts with these hashes, of every model, also of models that are not in use now."""
        keys = pl.DataFrame(key_columns(hashes), schema=dict.fromkeys(KEYS["vectors"], pl.UInt64))
        for path in (self.root / "vectors").glob("*/"):
            log = self._indexes.get(path) or VectorLog(path, KEYS["vectors"], "", on_disk=True)
            if isinstance(log, VectorLog) and log.on_disk:
                log.forget(keys)


def _keys(keys: pl.DataFrame) -> list[bytes]:
    """Return each row's key columns as bytes."""
    return _cut(keys.to_numpy(order="c").astype(np.uint64).tobytes(), 8 * keys.width)


def _cut(raw: bytes, size: int) -> list[bytes]:
    return [raw[i : i + size] for i in range(0, len(raw), size)]


def _checks(rows: NDArray[np.void]) -> NDArray[np.uint64]:
    """Return a digest of each record's key and value. (n,)"""
    digests = [hashlib.blake2b(row[:-8], digest_size=8).digest() for row in _cut(rows.tobytes(), rows.dtype.itemsize)]
    return np.frombuffer(b"".join(digests), "<u8")
