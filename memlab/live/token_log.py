"""Token vectors of one live memory: rows of its database, one for each text, and in process memory as blocks.

A row holds a text's token ids, scales and vectors, with a digest; the database overwrites what is deleted. In memory
each addition is a block, and blocks of similar size are merged, so that n additions make some log(n) blocks.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.models.protocols import Ints
from memlab.store.token_index import KEYS, TokenIndex
from memlab.store.token_vectors import BITS, DTYPES, Precision, TokenBlock, merge

AT_ONCE = 8192
"""Rows that are read at a time, which become one block: reading all of them at once takes twice the memory."""


class TokenLog(TokenIndex):
    """The token vectors of one fingerprint, in memory, and on disk if there is a database."""

    def __init__(self, path: Path, identity: str, precision: Precision, database: Database | None) -> None:
        self._database, self._precision, self._added = database, precision, 0
        super().__init__(path, identity)
        if database:
            self._blocks = {self._name(): block for block in self._load(database)}
            self._reindex()

    @property
    def on_disk(self) -> bool:
        """Whether there is a database."""
        return self._database is not None

    def add(self, block: TokenBlock) -> None:
        """Keep a block; if the disk cannot be written, in memory alone."""
        if self._database and not self._database.read_only:
            try:
                with self._database.transaction(durable=False):
                    self._database.run("INSERT OR REPLACE INTO token_vectors VALUES (?, ?, ?, ?, ?)",
                                       *_rows(self.path.name, block))
            except MemlabError as error:
                warnings.warn(f"token vectors are not saved, and computed again when the memory is loaded: {error}",
                              stacklevel=2)
        self._hold(block)

    def forget_other_keys(self, kept: set[bytes]) -> None:
        """Forget all texts but these, in memory."""
        blocks = list(self._blocks.values())
        self._blocks = {}
        for block in blocks:
            rows = np.flatnonzero([key.tobytes() in kept for key in block.keys])
            if len(rows):
                self._blocks[self._name()] = block.take(rows)
        self._reindex()

    def _hold(self, block: TokenBlock) -> None:
        while self._blocks and len(self._blocks[last := max(self._blocks)].ids) <= 2 * len(block.ids):
            block = merge([self._blocks.pop(last), block])
        self._blocks[self._name()] = block
        self._reindex()

    def _name(self) -> str:
        self._added += 1
        return f"{self._added:016d}"

    def _refresh(self) -> bool:
        return False  # one process at a time uses a memory

    def _load(self, database: Database) -> Iterator[TokenBlock]:
        """Yield the intact rows of the database, ``AT_ONCE`` in a block; others are computed again."""
        if not database.rows("SELECT name FROM sqlite_master WHERE name = 'token_vectors'"):
            return  # an older memory in a folder that cannot be written
        last: Any = -1
        while last is not None:
            block, last = self._page(database, last)
            if block is not None:
                yield block

    def _page(self, database: Database, last: Any) -> tuple[TokenBlock | None, Any]:
        """Return the intact rows of those that follow row ``last`` of the database, and the last row read, or None.

        A function of its own, so that the memory of these rows is free when the next ones are read.
        """
        rows = database.rows("SELECT rowid, key, tokens, digest, content FROM token_vectors "
                             "WHERE rowid > ? AND +model = ? ORDER BY rowid LIMIT ?",  # +: all rows, unsorted
                             last, self.path.name, AT_ONCE)
        blocks = list(self._intact(rows))
        return merge(blocks) if blocks else None, rows[-1][0] if rows else None

    def _intact(self, rows: list[tuple[Any, ...]]) -> Iterator[TokenBlock]:
        for _, key, tokens, digest, content in rows:
            if isinstance(key, bytes) and isinstance(content, bytes) and digest == _digest(key, content):
                with suppress(ValueError, TypeError):  # the digest does not cover the number of tokens
                    yield _block(key, tokens, content, self._precision)


def forget_other_tokens(database: Database, kept: set[bytes]) -> None:
    """Within a transaction, delete the token vectors of all texts but those with these keys, of every model."""
    rows = database.rows("SELECT model, key FROM token_vectors")
    database.run("DELETE FROM token_vectors WHERE model = ? AND key = ?", *(row for row in rows if row[1] not in kept))


def _rows(model: str, block: TokenBlock) -> Iterator[tuple[object, ...]]:
    for key, start, end in zip(block.keys, block.starts, block.starts[1:]):
        parts = (block.ids, block.scales, block.vectors)
        content = b"".join(np.ascontiguousarray(part[start:end]).tobytes() for part in parts)
        yield model, key.tobytes(), int(end - start), _digest(key.tobytes(), content), content


def _block(key: bytes, tokens: int, content: bytes, precision: Precision) -> TokenBlock:
    vectors = np.frombuffer(content, DTYPES[precision], offset=8 * tokens).reshape(tokens, -1)
    starts: Ints = np.array([0, tokens], np.int64)
    return TokenBlock(np.frombuffer(key, np.uint64).reshape(1, len(KEYS)), starts,
                      np.frombuffer(content, "<i4", tokens), np.frombuffer(content, "<f4", tokens, 4 * tokens), vectors,
                      BITS[precision])


def _digest(key: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(key + content, digest_size=8).digest()
