"""Vectors of one fingerprint on disk: a file of float32 (rows, dim), laid out for memory-mapping, without any header.

The database accounts for the rows: key, and digest of key and value. A row that it does not account for is free: zeros,
or what a killed process left there, which ``clear_free_rows`` overwrites. Free rows at the end are cut off.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.live.row_files import UNUSABLE, Span, clear_rows, data_end, entries, row_digest, write_rows
from memlab.models.protocols import Floats
from memlab.runtime.files import open_plain
from memlab.store.segments import write_identity

SUFFIX = ".f32"
FOLDER = "store/vectors"
"""Folder of the files, within that of the memory: one folder per fingerprint, one file per length of a vector."""


class VectorFile:
    """The file of one fingerprint and one length of vectors, and its rows in the database."""

    def __init__(self, database: Database, folder: Path, dim: int) -> None:
        self._database, self.folder, self.dim = database, folder, dim
        self.path = folder / f"{dim}{SUFFIX}"

    @staticmethod
    def of(database: Database, folder: Path) -> VectorFile | None:
        """Return the file of a fingerprint's folder that the database knows; None if there is none."""
        known = {name for name, in database.rows("SELECT path FROM vector_files")}
        dims = sorted(int(p.stem) for p in folder.glob(f"*{SUFFIX}") if _name(p) in known and p.stem.isdecimal())
        return VectorFile(database, folder, dims[-1]) if dims else None

    def load(self) -> tuple[list[tuple[bytes, int]], Floats]:
        """Return the (key, row) of intact vectors, and all rows of the file (rows, dim).

        Rows that do not match their digest become free, so that their vectors are computed again.
        """
        size = 4 * self.dim
        rows: list[tuple[Any, ...]] = self._database.rows(
            "SELECT key, row, digest FROM vectors WHERE file = (SELECT id FROM vector_files WHERE path = ?)",
            _name(self.path))
        if not all(isinstance(key, bytes) and isinstance(row, int) and row >= 0 for key, row, _ in rows):
            raise self._database.damaged()
        raw = self._read(size * (1 + max((row for _, row, _ in rows), default=-1)))
        values = np.frombuffer(raw[: len(raw) // size * size], "<f4").reshape(-1, self.dim)
        intact = [digest == row_digest(key, raw[row * size : (row + 1) * size]) for key, row, digest in rows]
        if not all(intact) and not self._database.read_only:
            with self._database.transaction():
                self._database.run("DELETE FROM vectors WHERE file = ? AND row = ?", *(
                    (self._number(), row) for (_, row, _), good in zip(rows, intact) if not good))
            clear_free_rows(self._database, self.folder.parent)
        return [(key, row) for (key, row, _), good in zip(rows, intact) if good], values

    def _read(self, most: int) -> bytes:
        """Return the file up to a number of bytes, without the zeros to which a row that is damaged may point.

        Raises MemlabError for a file that is there but cannot be read.
        """
        try:
            with open_plain(self.path) as file:
                return file.read(min(most, data_end(file.fileno())))
        except OSError as error:
            if error.errno not in UNUSABLE:  # its vectors are there still, and may be read the next time
                raise MemlabError(f"the vectors of this memory cannot be read: {error.strerror}", where=str(self.path),
                                  fix="check its permissions and its disk") from error
            warnings.warn(f"{self.path} cannot be read ({error.strerror}): vectors are computed again", stacklevel=2)
            return b""

    def write(self, keys: list[bytes], rows: list[int], values: Floats, identity: str) -> None:
        """Write vectors (n, dim) to free rows, then account for them; a power failure may lose both."""
        values = np.ascontiguousarray(values, "<f4")
        write_identity(self.folder, identity)
        write_rows(self.path, 4 * self.dim, ((rows[start], values[start:end].tobytes()) for start, end in _runs(rows)))
        with self._database.transaction(durable=False):
            number = self._number()
            self._database.run("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?, ?)", *(
                (number, row, key, row_digest(key, value.tobytes())) for key, row, value in zip(keys, rows, values)))

    def _number(self) -> int:
        """Return the number of the file in the database, which is made if there is none."""
        self._database.run("INSERT OR IGNORE INTO vector_files (path) VALUES (?)", (_name(self.path),))
        return self._database.number("SELECT id FROM vector_files WHERE path = ?", _name(self.path))


def forget_other_keys(database: Database, kept: set[bytes]) -> None:
    """Within a transaction, free the rows of all vectors with other keys than these, of every fingerprint."""
    rows = database.rows("SELECT file, row, key FROM vectors")
    database.run("DELETE FROM vectors WHERE file = ? AND row = ?",
                 *((file, row) for file, row, key in rows if key not in kept))


def clear_free_rows(database: Database, root: Path) -> None:
    """Overwrite with zeros what the files hold in free rows, cut free rows off at the end, and sync; root: FOLDER."""
    used: dict[object, list[Span]] = {}
    for name, row in database.rows("SELECT path, row FROM vectors JOIN vector_files ON file = id ORDER BY file, row"):
        if not isinstance(row, int) or row < 0:
            raise database.damaged()
        used.setdefault(name, []).append((row, row + 1))
    for path in (path for folder in entries(root) for path in entries(folder)):
        if path.suffix == SUFFIX and path.stem.isdecimal():
            clear_rows(path, 4 * int(path.stem), used.get(_name(path), []))


def _runs(rows: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the (start, end) of the positions whose rows follow each other."""
    start = 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or rows[end] != rows[end - 1] + 1:
            yield start, end
            start = end


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"
