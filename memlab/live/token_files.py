"""Token vectors of one fingerprint on disk: two memory-mapped files, in each of which row r is the same token.

``ids`` holds the vocabulary id and the scale of each token, ``vectors`` its vector. The database accounts for the rows:
key, first row, number of tokens, and a digest of the key and of the bytes in both files. Rows that it does not account
for are free: zeros, or what a killed process left there, which ``clear_free_tokens`` overwrites.
"""

from __future__ import annotations

import errno
import mmap
import os
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.live.holder import inode
from memlab.live.row_files import UNUSABLE, Span, clear_rows, entries, gaps, row_digest, write_rows
from memlab.models.protocols import Ints
from memlab.runtime.files import open_plain
from memlab.store.segments import store_errors, write_identity
from memlab.store.token_index import KEYS
from memlab.store.token_vectors import BITS, DTYPES, Precision, TokenBlock

FOLDER = "store/tokens"
"""Folder of the files, within that of the memory: one folder per fingerprint."""

IDS, VECTORS = "ids", "vectors"
HEAD = np.dtype([("id", "<i4"), ("scale", "<f4")])
"""A row of ``ids``."""

KEY_BYTES = 8 * len(KEYS)

MOST_TOKENS = 1 << 17
"""Tokens of a text: more than any model reads. What claims more is damaged."""


class TokenFiles:
    """The files of one fingerprint, and the texts whose rows the database accounts for.

    Args:
        database: That of the memory.
        folder: Folder of the files; its name is that of the fingerprint.
        precision: Number format of the vectors.

    Raises MemlabError for files that are there but cannot be read.
    """

    def __init__(self, database: Database, folder: Path, precision: Precision) -> None:
        self._database, self.folder, self._precision = database, folder, precision
        self._size = 0  # bytes of a vector; 0: not known yet
        self._keys: NDArray[np.uint64] = np.empty((0, len(KEYS)), np.uint64)  # of the texts by their first row
        self._begins: Ints = np.empty(0, np.int64)
        self._lengths: Ints = np.empty(0, np.int64)
        self._maps: dict[str, mmap.mmap] = {}
        self._files: dict[str, tuple[int, int]] = {}  # the inodes of the files that were read or written
        self._load()

    def block(self) -> TokenBlock | None:
        """Map the files as a block; free rows are texts with the key 0, which no text has. None if there is no text.

        Raises MemlabError if the files cannot be mapped.
        """
        self._maps = {}
        if not len(self._keys):
            return None
        end = self._end()
        free = gaps(self._begins, self._begins + self._lengths, end)
        begins = np.concatenate([self._begins, free[:, 0]])
        order = np.argsort(begins, kind="stable")
        keys = np.concatenate([self._keys, np.zeros((len(free), len(KEYS)), np.uint64)])
        self._maps = {name: self._map(name, end * size) for name, size in ((IDS, HEAD.itemsize), (VECTORS, self._size))}
        heads = np.frombuffer(self._maps[IDS], HEAD)
        vectors = np.frombuffer(self._maps[VECTORS], DTYPES[self._precision])
        return TokenBlock(keys[order], np.append(begins[order], end), heads["id"], heads["scale"],
                          vectors.reshape(end, -1), BITS[self._precision],
                          partial(_release_pages, tuple(self._maps.values())))

    def add(self, block: TokenBlock, identity: str) -> None:
        """Write a block to free rows, then account for it; a power failure may lose it.

        A text that is there already is replaced. Raises MemlabError if the disk cannot be written, or if somebody has
        changed the files.
        """
        self.check_files()
        if len(self._keys) and self._size != block.vectors[:1].nbytes:
            raise self._database.damaged()
        self._size = block.vectors[:1].nbytes
        heads = np.empty(len(block.ids), HEAD)
        heads["id"], heads["scale"] = block.ids, block.scales
        lengths = np.diff(block.starts)
        begins = self._free_rows(lengths)
        places = list(zip(begins.tolist(), block.starts.tolist(), block.starts[1:].tolist()))
        write_identity(self.folder, identity)
        write_rows(self.folder / IDS, HEAD.itemsize, _parts(places, heads))
        write_rows(self.folder / VECTORS, self._size, _parts(places, block.vectors))
        self._files = {name: inode(self.folder / name) for name in (IDS, VECTORS)}
        with self._database.transaction(durable=False):
            number = self._number()
            self._database.run("INSERT OR REPLACE INTO token_texts VALUES (?, ?, ?, ?, ?)", *(
                (number, key.tobytes(), begin, end - start,
                 row_digest(key.tobytes(), heads[start:end].tobytes(), block.vectors[start:end].tobytes()))
                for key, (begin, start, end) in zip(block.keys, places)))
        replaced = _is_in(self._keys, block.keys)
        if replaced.any():
            self._hold(self._keys[~replaced], self._begins[~replaced], self._lengths[~replaced])
        self._hold(np.concatenate([self._keys, block.keys]), np.concatenate([self._begins, begins]),
                   np.concatenate([self._lengths, lengths]))

    def check_files(self) -> None:
        """Raise MemlabError if a file was deleted, replaced or cut while it was open: a mapped page would be gone."""
        for name, number in self._files.items():
            path = self.folder / name
            if not path.exists() or inode(path) != number or (
                    name in self._maps and path.stat().st_size < len(self._maps[name])):
                raise MemlabError(f"{path.name} was deleted, replaced or cut while the memory was open",
                                  where=str(self.folder), fix="open the memory again, and leave its files alone")

    def forget_other_keys(self, kept: set[bytes]) -> None:
        """Forget all texts but these, in memory."""
        rows = np.array([key.tobytes() in kept for key in self._keys], np.bool_)
        self._hold(self._keys[rows], self._begins[rows], self._lengths[rows])

    def _hold(self, keys: NDArray[np.uint64], begins: Ints, lengths: Ints) -> None:
        order = np.argsort(begins, kind="stable")
        self._keys, self._begins, self._lengths = keys[order], begins[order], lengths[order]

    def _end(self) -> int:
        """Return the row behind all texts."""
        return int(self._begins[-1] + self._lengths[-1]) if len(self._begins) else 0

    def _free_rows(self, lengths: Ints) -> Ints:
        """Return the first row of each of some texts (n,): short ones in small gaps, the others behind all texts."""
        free = gaps(self._begins, self._begins + self._lengths, self._end())
        free = free[np.argsort(free[:, 1] - free[:, 0], kind="stable")].tolist()
        begins = np.full(len(lengths), -1, np.int64)
        at = 0
        for i in np.argsort(lengths, kind="stable").tolist():
            while at < len(free) and free[at][1] - free[at][0] < lengths[i]:
                at += 1
            if at == len(free):
                break
            begins[i] = free[at][0]
            free[at][0] += int(lengths[i])
        rest = begins < 0
        begins[rest] = self._end() + np.cumsum(lengths[rest]) - lengths[rest]
        return begins

    def _load(self) -> None:
        """Take up the intact texts; the rows of others become free, so that these are encoded again."""
        rows: list[tuple[Any, ...]] = self._database.rows(
            "SELECT key, first, tokens, digest FROM token_texts JOIN token_files ON file = id "
            "WHERE name = ? ORDER BY first", self.folder.name)
        (size,), = self._database.rows("SELECT max(size) FROM token_files WHERE name = ?", self.folder.name)
        self._size = size if type(size) is int and size > 0 else 0
        intact = self._intact(rows) if rows else []
        texts = [row for row, good in zip(rows, intact) if good]
        self._keys = np.frombuffer(b"".join(row[0] for row in texts), np.uint64).reshape(-1, len(KEYS))
        self._begins, self._lengths = np.array([row[1:3] for row in texts], np.int64).reshape(-1, 2).T
        if not all(intact) and not self._database.read_only:
            with self._database.transaction():
                self._database.run("DELETE FROM token_texts WHERE typeof(key) != 'blob'", ())
                self._database.run("DELETE FROM token_texts WHERE file = ? AND key = ?",
                                   *((self._number(), row[0]) for row, good in zip(rows, intact) if not good))
            clear_free_tokens(self._database, self.folder.parent)

    def _intact(self, rows: list[tuple[Any, ...]]) -> list[bool]:
        """Return for each text, by first row, whether its bytes match its digest and no text before it has its rows."""
        good, end = [False] * len(rows), 0
        try:
            with open_plain(self.folder / IDS) as ids, open_plain(self.folder / VECTORS) as vectors:
                self._files = {name: inode(self.folder / name) for name in (IDS, VECTORS)}
                files = ((ids.fileno(), HEAD.itemsize), (vectors.fileno(), self._size))
                most = min(os.fstat(file).st_size // size if size else 0 for file, size in files)
                left = 2 * most  # rows that are read: a forger may claim all rows for each text
                for i, (key, first, tokens, digest) in enumerate(rows):
                    if (isinstance(key, bytes) and len(key) == KEY_BYTES and type(first) is type(tokens) is int
                            and 0 < tokens <= min(left, MOST_TOKENS) and end <= first <= most - tokens):
                        left -= tokens
                        good[i] = digest == row_digest(key, *(
                            os.pread(file, tokens * size, first * size) for file, size in files))
                        end = first + tokens if good[i] else end
        except OSError as error:
            self._files = {}
            if error.errno not in UNUSABLE:  # they may be readable the next time
                raise MemlabError(f"the token vectors of this memory cannot be read: {error.strerror}",
                                  where=str(self.folder), fix="check their permissions and their disk") from error
            warnings.warn(f"{self.folder} cannot be read ({error.strerror}): token vectors are computed again",
                          stacklevel=2)
            return [False] * len(rows)
        return good

    def _map(self, name: str, size: int) -> mmap.mmap:
        with store_errors(self.folder / name), open_plain(self.folder / name) as file:
            if os.fstat(file.fileno()).st_size < size:
                raise OSError(errno.EIO, "it was cut")
            return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)

    def _number(self) -> int:
        """Return the number of the files in the database, which is made if there is none."""
        self._database.run("INSERT INTO token_files (name, size) VALUES (?, ?) "
                           "ON CONFLICT (name) DO UPDATE SET size = excluded.size", (self.folder.name, self._size))
        return self._database.number("SELECT id FROM token_files WHERE name = ?", self.folder.name)


def forget_other_tokens(database: Database, kept: set[bytes]) -> None:
    """Within a transaction, free the rows of all texts but those with these keys, of every fingerprint."""
    database.run("DELETE FROM token_texts WHERE typeof(key) != 'blob'", ())  # damaged: no key equals it
    rows = database.rows("SELECT file, key FROM token_texts")
    database.run("DELETE FROM token_texts WHERE file = ? AND key = ?", *(row for row in rows if row[1] not in kept))


def clear_free_tokens(database: Database, root: Path) -> None:
    """Overwrite with zeros what the files hold in free rows, cut free rows off at the end, and sync; root: FOLDER."""
    used: dict[object, list[Span]] = {}
    sizes: dict[object, int] = {}
    rows: list[tuple[Any, ...]] = database.rows(
        "SELECT name, size, first, tokens FROM token_texts JOIN token_files ON file = id ORDER BY first")
    for name, size, first, tokens in rows:
        if type(size) is type(first) is type(tokens) is int and size > 0 <= first and tokens > 0:
            sizes[name] = size
            used.setdefault(name, []).append((first, first + tokens))
    for folder in entries(root):
        spans = used.get(folder.name, [])
        clear_rows(folder / IDS, HEAD.itemsize, spans)
        clear_rows(folder / VECTORS, sizes.get(folder.name, 1), spans)


def _release_pages(maps: tuple[mmap.mmap, ...]) -> None:
    """Take the pages of these maps out of the memory of this process; the system keeps them for as long as it likes.

    Only where the system can: elsewhere it takes them back itself when memory is short.
    """
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapped in maps:
            mapped.madvise(mmap.MADV_DONTNEED)


def _parts(places: list[tuple[int, int, int]], rows: NDArray[Any]) -> Iterator[tuple[int, bytes]]:
    """Yield (row of the file, bytes) of the texts ``rows[start:end]``, those together that follow each other there."""
    at = 0
    while at < len(places):
        begin, start, end = places[at]
        at += 1
        while at < len(places) and places[at][0] == begin + end - start:
            end = places[at][2]
            at += 1
        yield begin, rows[start:end].tobytes()


def _is_in(keys: NDArray[np.uint64], others: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Return which of some keys (n, 2) are among others (m, 2), (n,)."""
    inside: NDArray[np.bool_] = np.isin(keys[:, 0], others[:, 0])  # numbers compare much faster than whole keys
    if inside.any():
        form = np.dtype((np.void, KEY_BYTES))
        one, two = (np.ascontiguousarray(some).view(form).reshape(-1) for some in (keys[inside], others))
        inside[inside] = np.isin(one, two)
    return inside
