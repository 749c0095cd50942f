"""Files of token vectors: immutable, named by the digest of their bytes, and memory-mapped.

Layout, all little-endian: a header of eight int64 (the mark, the version, texts, tokens, columns of the vectors, bytes
of each, bits of a number in a code or 0, 0), then the arrays of ``TokenBlock``: keys, starts, ids, scales, vectors.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import re
import warnings
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import DTypeLike

from memlab.runtime.files import open_plain
from memlab.store.segments import DAMAGED, write_file
from memlab.store.token_vectors import BITS, DTYPES, TokenBlock

SUFFIX = ".tokens"
_NAME = re.compile(rf"[0-9a-f]{{32}}\{SUFFIX}")
_MARK, _VERSION, _HEADER = 0x6E656B6F746C6D, 1, 64  # "mltoken"
_FORMATS = {(DTYPES[precision].itemsize, bits): DTYPES[precision] for precision, bits in BITS.items()}


def names(folder: Path) -> list[str]:
    """Return the names of a folder's files, sorted; none if there is no folder."""
    try:
        return sorted(name for name in os.listdir(folder) if _NAME.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def write(folder: Path, block: TokenBlock) -> str:
    """Write a block as a new file and return its name."""
    texts, tokens = len(block.keys), len(block.ids)
    header = [_MARK, _VERSION, texts, tokens, block.vectors.shape[1], block.vectors.dtype.itemsize, block.bits, 0]
    data = b"".join([np.array(header, "<i8").tobytes(), block.keys.astype("<u8").tobytes(),
                     block.starts.astype("<i8").tobytes(), block.ids.astype("<i4").tobytes(),
                     block.scales.astype("<f4").tobytes(), block.vectors.tobytes()])
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + SUFFIX
    write_file(folder / name, data)
    return name


def read(path: Path) -> TokenBlock | None:
    """Map a file, or return None if its bytes do not match the digest in its name.

    Raises FileNotFoundError when it is gone, and OSError for what is no plain file.
    """
    with open_plain(path) as file:
        shape = _shape(file)
        if shape is None:
            return None
        texts, tokens, columns, size, bits = shape
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hashlib.blake2b(data, digest_size=16).hexdigest() != path.stem:
        return None
    at, parts = _HEADER, []
    for array, count in _arrays(texts, tokens, columns, _FORMATS[size, bits]):
        parts.append(np.frombuffer(data, array, count, at))
        at += parts[-1].nbytes
    keys, starts, ids, scales, vectors = parts
    return TokenBlock(keys.reshape(-1, 2), starts, ids, scales, vectors.reshape(tokens, columns), bits)


def count(path: Path) -> int:
    """Return the number of texts of a file, 0 if it is damaged or gone."""
    try:
        with open_plain(path) as file:
            shape = _shape(file)
    except OSError:
        return 0
    return shape[0] if shape else 0


def _shape(file: BinaryIO) -> tuple[int, int, int, int, int] | None:
    """Read the header from the number of texts to that of bits; None unless the file is as long as it says."""
    header = file.read(_HEADER)
    if len(header) < _HEADER:
        return None
    mark, version, texts, tokens, columns, size, bits, _ = np.frombuffer(header, "<i8").tolist()
    if (mark, version) != (_MARK, _VERSION) or (size, bits) not in _FORMATS or min(texts, tokens, columns) < 0:
        return None
    arrays = _arrays(texts, tokens, columns, _FORMATS[size, bits])
    length = _HEADER + sum(np.dtype(array).itemsize * n for array, n in arrays)
    return (texts, tokens, columns, size, bits) if os.fstat(file.fileno()).st_size == length else None


def _arrays(texts: int, tokens: int, columns: int, dtype: DTypeLike) -> list[tuple[DTypeLike, int]]:
    """Return the format and the length of each array behind the header."""
    return [("<u8", 2 * texts), ("<i8", texts + 1), ("<i4", tokens), ("<f4", tokens), (dtype, tokens * columns)]


def load(path: Path) -> TokenBlock | None:
    """Map a file; a damaged one is named in a warning, moved aside, and counts as absent."""
    try:
        block = read(path)
    except OSError:  # pruned meanwhile, or it cannot be read: its texts are encoded again
        return None
    if block is None:
        aside = path.with_name(path.name + DAMAGED)
        warnings.warn(f"token vectors {path} are damaged: the bytes do not match the digest in the name. They are "
                      f"moved aside as {aside.name}, and computed anew", stacklevel=2)
        try:
            os.replace(path, aside)
        except OSError:  # a store that may only be read: left where it is, and ignored
            return None
    return block
