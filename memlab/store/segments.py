"""Immutable Parquet segments of the store, which hold rows of keys and one column ``value``.

Knows files and digests, nothing of models. No locks are needed: a segment is written under a temporary name, synced
and renamed, and never changes afterwards, so a reader sees a whole file or none. Its name is the BLAKE2b digest of its
bytes (polars neither writes nor verifies Parquet's page checksums), which is checked whenever it is read.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.runtime.files import atomic_write, open_plain

SEGMENT = re.compile(r"[0-9a-f]{32}\.parquet")
DAMAGED = ".damaged"
MOST_BYTES = 1 << 33
"""Bytes of a segment that are read: 8.6 GB, more than memlab writes into one."""

IDENTITY = "identity.json"
"""Describes the fingerprint of a folder; for people and ``info``, never read for a lookup."""

_FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk quota is used up",
         errno.EFBIG: "the limit on file sizes is reached"}


def key_columns(text_ids: pl.Series) -> NDArray[np.uint64]:
    """Turn text hashes (32 hexadecimal digits each) into two 64-bit integers. Shape (n, 2).

    Integers join some four times faster than strings and take a quarter of the memory.

    >>> key_columns(pl.Series(["0000000000000001ffffffffffffffff"])).tolist()
    [[1, 18446744073709551615]]
    """
    return np.frombuffer(bytes.fromhex("".join(text_ids)), ">u8").astype(np.uint64).reshape(-1, 2)


def segment_names(folder: Path) -> list[str]:
    """Return the names of a folder's segments, sorted; none if there is no folder."""
    try:
        return sorted(name for name in os.listdir(folder) if SEGMENT.fullmatch(name))
    except (FileNotFoundError, NotADirectoryError):  # the latter is reported when something is to be written
        return []


def read(path: Path) -> pl.DataFrame | None:
    """Return the rows of a segment, or None if its bytes do not match the digest in its name.

    Raises FileNotFoundError when it is gone, and OSError for what is no plain file.
    """
    with open_plain(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            return None
        data = file.read()
    if hashlib.blake2b(data, digest_size=16).hexdigest() != path.stem:
        return None
    return pl.read_parquet(io.BytesIO(data))


def load(path: Path) -> pl.DataFrame | None:
    """Return the rows of a segment; a damaged one is named in a warning, moved aside, and counts as absent."""
    try:
        rows = read(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ESTALE):  # merged or pruned meanwhile; ESTALE is how NFS says it
            return None
        warnings.warn(f"segment {path} cannot be read ({error.strerror}); its rows are computed anew", stacklevel=2)
        return None
    if rows is None:
        aside = path.with_name(path.name + DAMAGED)
        warnings.warn(f"segment {path} is damaged: its bytes do not match the digest in its name. It is moved "
                      f"aside as {aside.name}, and its rows are computed anew", stacklevel=2)
        try:
            os.replace(path, aside)
        except OSError:  # a store that may only be read: left where it is, and ignored
            return None
    return rows


def write(folder: Path, rows: pl.DataFrame) -> str:
    """Write rows as a new segment and return its name."""
    buffer = io.BytesIO()
    # uncompressed: vectors and hashes are as good as random, compression saves 8 % and doubles the time
    rows.write_parquet(buffer, compression="uncompressed", statistics=False)
    data = buffer.getbuffer()
    name = hashlib.blake2b(data, digest_size=16).hexdigest() + ".parquet"
    write_file(folder / name, data)
    return name


def write_identity(folder: Path, identity: str) -> None:
    """Write the description of a fingerprint into its folder, unless it is there."""
    with store_errors(folder):
        missing = not (folder / IDENTITY).exists()
    if missing:
        write_file(folder / IDENTITY, identity.encode())


def write_file(path: Path, data: bytes | memoryview) -> None:
    """Write a file of the store whole or not at all; its folder is created."""
    with store_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(path, data)


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise an OSError of the block as a MemlabError that names the store and the way out."""
    try:
        yield
    except OSError as error:
        raise MemlabError(
            f"the store cannot be written: {_FULL.get(error.errno or 0, error.strerror or error)} "
            "(what was stored before is kept)", where=str(path),
            fix="free some space there, or put the store elsewhere with store=DIR or MEMLAB_HOME=DIR") from error
