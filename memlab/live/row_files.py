"""Files of rows of one size that a database accounts for; all other rows are free, and are overwritten with zeros."""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from memlab.models.protocols import Ints
from memlab.store.segments import store_errors

PIECE = 1 << 20
"""Bytes that are compared with zeros at a time."""

UNUSABLE = (errno.ENOENT, errno.ENOTDIR, errno.EINVAL)
"""Errors of reading that say that there is no such file, or that it is no plain one: its rows are lost."""

Span = tuple[int, int]
"""The first row of some that follow each other, and the row behind the last."""


def write_rows(path: Path, size: int, parts: Iterable[tuple[int, bytes]]) -> None:
    """Write parts, each from a row of ``size`` bytes on, to a file, which is made if missing."""
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            for row, data in parts:
                _write_at(file, data, row * size)
        finally:
            os.close(file)


def clear_rows(path: Path, size: int, used: Sequence[Span]) -> None:
    """Overwrite all rows but the used ones (by first row), cut off those behind the last, and sync.

    A file that is missing stays so.
    """
    end = max((end for _, end in used), default=0)
    with store_errors(path):
        if not path.is_file():
            return
        file = os.open(path, os.O_RDWR)
        try:
            changed = os.fstat(file).st_size > end * size
            if changed:
                os.ftruncate(file, end * size)
            last = -(-data_end(file) // size)
            spans = np.array([(min(begin, last), min(stop, last)) for begin, stop in used], np.int64).reshape(-1, 2)
            for begin, stop in gaps(spans[:, 0], spans[:, 1], min(end, last)).tolist():
                changed |= _clear(file, begin * size, stop * size)
            if changed:
                os.fsync(file)
        finally:
            os.close(file)


def row_digest(*parts: bytes) -> bytes:
    """Return the digest, 8 bytes, of a key and the bytes that it stands for."""
    return hashlib.blake2b(b"".join(parts), digest_size=8).digest()


def entries(folder: Path) -> list[Path]:
    """Return what a folder holds, sorted; nothing if there is no folder. Raises MemlabError if it cannot be read."""
    with store_errors(folder):
        return sorted(folder.iterdir()) if folder.is_dir() else []


def gaps(begins: Ints, ends: Ints, end: int) -> Ints:
    """Return the spans (first, end), (m, 2), below ``end`` that no used one covers.

    begins, ends: (n,) of the used ones, sorted by their begins; they may overlap.

    >>> gaps(np.array([1, 2, 6]), np.array([3, 4, 7]), 9).tolist()
    [[0, 1], [4, 6], [7, 9]]
    """
    behind = np.maximum.accumulate(np.concatenate([np.zeros(1, np.int64), ends]))
    free = np.stack([behind, np.minimum(np.append(begins, end), end)], axis=1)
    return free[free[:, 0] < free[:, 1]]


def data_end(file: int) -> int:
    """Return where the bytes of a file end that its disk holds; holes may follow."""
    size, end = os.fstat(file).st_size, 0
    with suppress(OSError):  # no data follow
        while end < size:
            end = os.lseek(file, os.lseek(file, end, os.SEEK_DATA), os.SEEK_HOLE)
    os.lseek(file, 0, os.SEEK_SET)
    return end


def _clear(file: int, begin: int, end: int) -> bool:
    """Overwrite some bytes with zeros; return whether there were others."""
    changed = False
    for at in range(begin, end, PIECE):
        data = os.pread(file, min(PIECE, end - at), at)
        if data.count(0) < len(data):
            _write_at(file, bytes(len(data)), at)
            changed = True
    return changed


def _write_at(file: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    while rest:
        written = os.pwrite(file, rest, offset)
        rest, offset = rest[written:], offset + written
