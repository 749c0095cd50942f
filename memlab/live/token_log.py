"""Token vectors of one live memory: memory-mapped files, and blocks in process memory for what has no file.

In process memory each addition is a block, and blocks of similar size are merged, so that n additions make some log(n)
blocks.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from memlab.errors import MemlabError
from memlab.live.database import Database
from memlab.live.token_files import TokenFiles
from memlab.store.token_index import TokenIndex
from memlab.store.token_vectors import Precision, TokenBlock, merge

MAPPED = ""
"""Name of the block that is mapped; the others have numbers."""


class TokenLog(TokenIndex):
    """The token vectors of one fingerprint: on disk if there is a database that can be written, else in memory."""

    def __init__(self, path: Path, identity: str, precision: Precision, database: Database | None) -> None:
        self._database, self._added = database, 0
        super().__init__(path, identity)
        self._mapped = TokenFiles(database, path, precision) if database else None
        if self._mapped:
            self._map(self._mapped)

    @property
    def on_disk(self) -> bool:
        """Whether there is a database."""
        return self._database is not None

    def add(self, block: TokenBlock) -> None:
        """Keep a block; if the disk cannot be written, in memory alone."""
        if not self._save(block):
            self._hold(block)

    def forget_other_keys(self, kept: set[bytes]) -> None:
        """Forget all texts but these; their rows on disk are free then."""
        held = [block for name, block in self._blocks.items() if name != MAPPED]
        self._blocks = {}
        for block in held:
            rows = np.flatnonzero([key.tobytes() in kept for key in block.keys])
            if len(rows):
                self._blocks[self._name()] = block.take(rows)
        if self._mapped:
            self._mapped.forget_other_keys(kept)
            self._map(self._mapped)
        else:
            self._reindex()

    def check_files(self) -> None:
        """Raise MemlabError if somebody has changed the files."""
        if self._mapped:
            self._mapped.check_files()

    def _save(self, block: TokenBlock) -> bool:
        """Write a block to the disk; return whether that was possible."""
        if self._database is None or self._mapped is None or self._database.read_only:
            return False
        try:
            self._mapped.add(block, self.identity)
            self._map(self._mapped)
        except MemlabError as error:
            warnings.warn(f"token vectors are not saved, and computed again when the memory is loaded: {error}",
                          stacklevel=4)
            return False
        return True

    def _map(self, mapped: TokenFiles) -> None:
        """Replace the mapped block by one of all texts on disk."""
        block = mapped.block()
        self._blocks.pop(MAPPED, None)
        if block is not None:
            self._blocks[MAPPED] = block
        self._reindex()

    def _hold(self, block: TokenBlock) -> None:
        """Keep a block in process memory."""
        while (last := max(self._blocks, default=MAPPED)) != MAPPED and (
                len(self._blocks[last].ids) <= 2 * len(block.ids)):
            block = merge([self._blocks.pop(last), block])
        self._blocks[self._name()] = block
        self._reindex()

    def _name(self) -> str:
        self._added += 1
        return f"{self._added:016d}"

    def _refresh(self) -> bool:
        return False  # one process at a time uses a memory
