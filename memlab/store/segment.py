"""Segments: keys and arrays in immutable files named by content and memory-mapped, and FAISS files beside them.

No locks are needed: a segment is written under a temporary name and renamed, and never changes afterwards, so a reader
sees a whole file or none. Its digest (BLAKE2b) is checked when it is mapped; what is mapped stays, whoever removes the
file. Layout, all little-endian: eight int64 (the mark, the version, the number of arrays, zeros), for each array four
(the place of its format in ``FORMATS``, rows, columns or 0, 0), then the arrays, each from a multiple of 64 bytes on.

Files of FAISS indexes end with a BLAKE2b digest of the bytes before it: a damaged one is built again. FAISS checks no
sums: a changed bit in codes or links changes which vectors are found, without a word.
"""

from __future__ import annotations

import errno
import hashlib
import io
import logging
import mmap
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.store.token_vectors import keep_pages
from memlab.support.files import atomic_path, atomic_write, disk_faults, open_plain

Keys = NDArray[np.uint64]
"""Keys (n, 2 or 4): the halves of the hash of a text, or of a query and a passage."""

Arrays = Sequence[NDArray[Any]]
"""Arrays of one or two dimensions: the keys (n, words), and what belongs to them."""

Damaged = Literal["moved aside", "removed", "left"]
"""What is done with a damaged segment."""

SUFFIX = ".segment"
DAMAGED = ".damaged"
FORMATS = tuple(map(np.dtype, ("<u8", "<i8", "<i4", "<f4", "<f2", "i1", "u1")))
MAPPED = 4 << 20
"""Bytes from which on a file is mapped; smaller ones are read, since each mapping keeps a file open."""

IDENTITY = "identity.json"
"""Describes the fingerprint of a folder; for people and ``info``, never read for a lookup."""

_NAME = re.compile(rf"[0-9a-f]{{32}}\{SUFFIX}")
_MARK, _VERSION, _WORDS, _EACH, _ALIGNED, _MOST_ARRAYS = 0x746E656D676573, 1, 8, 4, 64, 8  # "segment"
_ELSEWHERE = "put the store elsewhere with store=DIR or MEMLAB_HOME=DIR"
_UNREADABLE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
"""Merged or pruned meanwhile; ESTALE is how NFS says it."""


@dataclass(frozen=True)
class Segment:
    """Arrays of a file: the keys first. ``release`` frees mapped pages of the process."""

    arrays: Arrays
    bytes: int
    release: Callable[[], None] = keep_pages

    @property
    def keys(self) -> Keys:
        """The keys (n, words)."""
        return self.arrays[0]


def key_columns(text_ids: pl.Series) -> Keys:
    """Turn text hashes (32 hexadecimal digits each) into two 64-bit integers. Shape (n, 2).

    Integers compare faster than strings and take a quarter of the memory.

    >>> key_columns(pl.Series(["0000000000000001ffffffffffffffff"])).tolist()
    [[1, 18446744073709551615]]
    """
    return np.frombuffer(bytes.fromhex("".join(text_ids)), ">u8").astype(np.uint64).reshape(-1, 2)


def names(folder: Path) -> list[str]:
    """Return the names of a folder's segments, sorted; none if there is no folder. Raises DiskFault."""
    with disk_faults(folder, "cannot be read", _ELSEWHERE):
        try:
            return sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
        except (FileNotFoundError, NotADirectoryError):  # the latter is reported when something is to be written
            return []


def pack(arrays: Arrays) -> bytes:
    """Return the bytes of a segment with these arrays."""
    head = np.zeros((2 + len(arrays), _EACH), "<i8")
    head.ravel()[:3] = _MARK, _VERSION, len(arrays)
    for row, array in zip(head[2:], arrays):
        row[:3] = FORMATS.index(array.dtype), len(array), array.shape[1] if array.ndim == 2 else 0
    parts, end = [head.tobytes()], head.nbytes
    for array in arrays:
        parts += [bytes(-end % _ALIGNED), array.tobytes()]
        end += -end % _ALIGNED + array.nbytes
    return b"".join(parts)


def write(folder: Path, arrays: Arrays, sync: bool = True) -> str:
    """Write arrays as a new segment and return its name; without ``sync`` a power failure may damage it."""
    data = pack(arrays)
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + SUFFIX
    write_file(folder / name, data, sync)
    return name


def read(path: Path) -> Segment | None:
    """Map a segment, or return None if its bytes do not match the digest in its name.

    Raises FileNotFoundError when it is gone, and OSError for what is no plain file.
    """
    with open_plain(path) as file:
        layout = _layout(file)
        if layout is None:
            return None
        size = os.fstat(file.fileno()).st_size
        data: bytes | mmap.mmap
        if size < MAPPED:
            file.seek(0)
            data = file.read()
        else:
            data = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    if hashlib.blake2b(data, digest_size=16).hexdigest() != path.stem:
        return None
    arrays = [np.frombuffer(data, form, rows * max(columns, 1), at).reshape((rows, columns) if columns else rows)
              for form, rows, columns, at in layout]
    return Segment(arrays, size, keep_pages if isinstance(data, bytes) else partial(_release_pages, data))


def load(path: Path, damaged: Damaged = "moved aside") -> Segment | None:
    """Map a segment; a damaged one is named in a warning, moved aside or removed or left, and counts as absent."""
    try:
        segment = read(path)
    except OSError as error:
        if error.errno not in _UNREADABLE:
            warnings.warn(f"segment {path} cannot be read ({error.strerror}); its rows are computed anew", stacklevel=2)
        return None
    if segment is None:
        warnings.warn(f"segment {path} is damaged: its bytes do not match the digest in its name. It is {damaged}, and "
                      "its rows are computed anew", stacklevel=2)
        with suppress(OSError):  # a store that may only be read: left where it is, and ignored
            if damaged == "moved aside":
                os.replace(path, path.with_name(path.name + DAMAGED))
            elif damaged == "removed":
                path.unlink()
    return segment


def count(path: Path) -> int:
    """Return the number of keys of a segment, 0 if it is damaged or gone."""
    try:
        with open_plain(path) as file:
            layout = _layout(file)
    except OSError:
        return 0
    return layout[0][1] if layout else 0


def _layout(file: BinaryIO) -> list[tuple[np.dtype[Any], int, int, int]] | None:
    """Read the format, rows, columns and place of each array; None unless the file is as long as it says."""
    raw = file.read(8 * (_WORDS + _EACH * _MOST_ARRAYS))
    head = np.frombuffer(raw[: len(raw) // 8 * 8], "<i8")
    if len(head) < _WORDS or head[:2].tolist() != [_MARK, _VERSION] or not 0 < head[2] <= _MOST_ARRAYS:
        return None
    words = head[_WORDS : _WORDS + _EACH * int(head[2])]
    if len(words) < _EACH * head[2]:
        return None
    layout, end = [], 8 * (_WORDS + len(words))
    for form, rows, columns, _ in words.reshape(-1, _EACH).tolist():
        if not 0 <= form < len(FORMATS) or rows < 0 or columns < 0:
            return None
        at = end + -end % _ALIGNED
        layout.append((FORMATS[form], rows, columns, at))
        end = at + FORMATS[form].itemsize * rows * max(columns, 1)
    return layout if os.fstat(file.fileno()).st_size == end else None


def _release_pages(mapped: mmap.mmap) -> None:
    """Release the pages of a map from this process; the system may keep them cached.

    Only where the system can: elsewhere it takes them back itself when memory is short.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        mapped.madvise(mmap.MADV_DONTNEED)


def write_identity(folder: Path, identity: str) -> None:
    """Write the description of a fingerprint into its folder, unless it is there."""
    with store_errors(folder):
        missing = not (folder / IDENTITY).exists()
    if missing:
        write_file(folder / IDENTITY, identity.encode())


def write_file(path: Path, data: bytes, sync: bool = True) -> None:
    """Write a file of the store whole or not at all; its folder is created."""
    with atomic_path(path, sync, _ELSEWHERE) as temporary:
        temporary.write_bytes(data)


def store_errors(path: Path) -> AbstractContextManager[None]:
    """Raise a fault of the disk in the block as a DiskFault that names the path and the way out."""
    return disk_faults(path, other=_ELSEWHERE)


DIGEST = 32
"""Bytes of the digest at the end of a file; FAISS reads what it needs from the start and ignores them."""

_BLOCK = 1 << 20


def write_index(faiss: Any, index: Any, path: Path) -> None:
    """Write an index and its digest, whole or not at all."""
    with atomic_path(path) as temporary:
        faiss.write_index(index, str(temporary))
        digest = _digest(temporary, temporary.stat().st_size)
        with temporary.open("ab") as file:
            file.write(digest)


def read_index(faiss: Any, path: Path) -> Any | None:
    """Map the index of this path; None if there is none, or none that is as it was written."""
    if not path.is_file():
        return None
    size = path.stat().st_size - DIGEST
    with path.open("rb") as file:
        file.seek(max(size, 0))
        end = file.read(DIGEST) if size > 0 else b""
    undamaged = any(end) and end == _digest(path, size)  # zeros end a file that was lengthened
    if undamaged:
        with suppress(RuntimeError):  # not an index that this FAISS reads
            return faiss.read_index(str(path), getattr(faiss, "IO_FLAG_MMAP_IFC", faiss.IO_FLAG_MMAP))
    logging.getLogger("memlab").warning("%s is damaged and is built again", path.name)
    return None


def write_arrays(path: Path, **arrays: Any) -> None:
    """Write some arrays and their digest, whole or not at all."""
    content = io.BytesIO()
    np.savez(content, **arrays)
    digest = hashlib.blake2b(content.getbuffer(), digest_size=DIGEST).digest()
    atomic_write(path, content.getvalue() + digest)


def read_arrays(path: Path) -> Mapping[str, NDArray[Any]] | None:
    """Return the arrays of a file; None if there is none, or none that is as it was written."""
    try:
        written = path.read_bytes()
    except OSError:
        return None
    content, digest = written[:-DIGEST], written[-DIGEST:]
    return np.load(io.BytesIO(content)) if hashlib.blake2b(content, digest_size=DIGEST).digest() == digest else None


def _digest(path: Path, size: int) -> bytes:
    """Return the digest of the first ``size`` bytes of a file."""
    total = hashlib.blake2b(digest_size=DIGEST)
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(_BLOCK, size))):
            total.update(block)
            size -= len(block)
    return total.digest()
