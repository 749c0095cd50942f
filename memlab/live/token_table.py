"""Token vectors as earlier versions kept them: a table of the database with one row for each text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from memlab.live.database import Database
from memlab.live.row_files import row_digest
from memlab.store.token_index import KEYS
from memlab.store.token_vectors import BITS, DTYPES, Precision, TokenBlock, merge

AT_ONCE = 8192
"""Rows that are read at a time: all of them at once would take twice the memory."""

TABLE = "token_vectors"
"""The name of the table."""


def earlier_blocks(database: Database, model: str, precision: Precision) -> Iterator[tuple[TokenBlock | None, int]]:
    """Yield the intact texts of a fingerprint, ``AT_ONCE`` in a block, and the number of the last row of each block."""
    last: Any = -1
    while database.has_table(TABLE):
        block, last = _page(database, model, precision, last)
        if last is None:
            return
        yield block, last


def delete_earlier(database: Database, model: str, last: int) -> None:
    """Within a transaction, delete the rows of a fingerprint up to one."""
    database.run("DELETE FROM token_vectors WHERE rowid <= ? AND +model = ?", (last, model))


def forget_earlier(database: Database, kept: set[bytes]) -> None:
    """Within a transaction, delete the rows of all texts but those with these keys, of every fingerprint."""
    if database.has_table(TABLE):
        database.run("DELETE FROM token_vectors WHERE typeof(key) != 'blob'", ())  # damaged: no key equals it
        rows = database.rows("SELECT model, key FROM token_vectors")
        database.run("DELETE FROM token_vectors WHERE model = ? AND key = ?",
                     *(row for row in rows if row[1] not in kept))


def _page(database: Database, model: str, precision: Precision, last: Any) -> tuple[TokenBlock | None, Any]:
    """Return the intact rows of those that follow row ``last`` of the database, and the last row read, or None.

    A function of its own, so that the memory of these rows is free when the next ones are read.
    """
    rows = database.rows("SELECT rowid, key, tokens, digest, content FROM token_vectors "
                         "WHERE rowid > ? AND +model = ? ORDER BY rowid LIMIT ?",  # +: all rows, unsorted
                         last, model, AT_ONCE)
    blocks = list(_intact(rows, precision))
    widths = Counter(block.vectors.shape[1] for block in blocks)  # no digest covers the number of tokens
    usual = [block for block in blocks if block.vectors.shape[1] == widths.most_common(1)[0][0]]
    return merge(usual) if usual else None, rows[-1][0] if rows else None


def _intact(rows: list[tuple[Any, ...]], precision: Precision) -> Iterator[TokenBlock]:
    for _, key, tokens, digest, content in rows:
        if (isinstance(key, bytes) and isinstance(content, bytes) and digest == row_digest(key, content)
                and type(tokens) is int and 0 < tokens < len(content)):
            with suppress(ValueError):  # the content has another length
                yield _block(key, tokens, content, precision)


def _block(key: bytes, tokens: int, content: bytes, precision: Precision) -> TokenBlock:
    vectors = np.frombuffer(content, DTYPES[precision], offset=8 * tokens).reshape(tokens, -1)
    return TokenBlock(np.frombuffer(key, np.uint64).reshape(1, len(KEYS)), np.array([0, tokens], np.int64),
                      np.frombuffer(content, "<i4", tokens), np.frombuffer(content, "<f4", tokens, 4 * tokens), vectors,
                      BITS[precision])
