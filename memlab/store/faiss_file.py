"""Files of FAISS indexes that end with a BLAKE2b digest of the bytes before it: a damaged one is built again.

FAISS checks no sums: a changed bit in codes or links changes which vectors are found, without a word.
"""

from __future__ import annotations

import hashlib
import logging
from contextlib import suppress
from pathlib import Path
from typing import Any

from memlab.runtime.files import atomic_path, make_folder

DIGEST = 32
"""Bytes of the digest at the end of a file; FAISS reads what it needs from the start and ignores them."""

_BLOCK = 1 << 20


def write_index(faiss: Any, index: Any, path: Path) -> None:
    """Write an index and its digest, whole or not at all."""
    make_folder(path.parent)
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


def _digest(path: Path, size: int) -> bytes:
    """Return the digest of the first ``size`` bytes of a file."""
    total = hashlib.blake2b(digest_size=DIGEST)
    with path.open("rb") as file:
        while size > 0 and (block := file.read(min(_BLOCK, size))):
            total.update(block)
            size -= len(block)
    return total.digest()
