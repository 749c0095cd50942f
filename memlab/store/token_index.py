"""Index over the token vectors of one fingerprint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from memlab.models.protocols import Ints
from memlab.store import token_file
from memlab.store.segments import write_identity
from memlab.store.token_vectors import TokenBlock, TokenVectors

KEYS = ["h0", "h1"]
"""The halves of a text's hash."""

_NONE = pl.DataFrame(schema={"h0": pl.UInt64, "h1": pl.UInt64, "segment": pl.UInt32, "row": pl.UInt32})


class TokenIndex:
    """The mapped files of one fingerprint; of two files with the same text the first by name counts."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path, self.keys, self.identity = path, KEYS, identity
        self._blocks: dict[str, TokenBlock] = {}
        self._ignored: set[str] = set()  # damaged files that could not be moved aside
        self._index = _NONE

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """Return ``wanted`` (h0, h1 and ``at``) with block and row, nulls where a text is not stored."""
        located = wanted.join(self._index, on=KEYS, how="left", maintain_order="left")
        if located["segment"].null_count() and self._refresh():
            located = wanted.join(self._index, on=KEYS, how="left", maintain_order="left")
        return located

    def get(self, located: pl.DataFrame) -> TokenVectors:
        """Return the token vectors of texts that ``find`` has located, all of them."""
        blocks = list(self._blocks.values())
        block_of, rows = (located[column].to_numpy().astype(np.int64) for column in ("segment", "row"))
        begins, ends = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for number in np.unique(block_of):
            here = block_of == number
            starts = blocks[number].starts
            begins[here], ends[here] = starts[rows[here]], starts[rows[here] + 1]
        return TokenVectors(blocks, block_of, begins, ends - begins)

    def add(self, block: TokenBlock) -> None:
        """Store a block in a new file and map it."""
        write_identity(self.path, self.identity)
        name = token_file.write(self.path, block)
        self._ignored.discard(name)
        self._blocks[name] = token_file.load(self.path / name) or block
        self._reindex()

    def _refresh(self) -> bool:
        """Follow the files that came and went; return whether there were any."""
        names = set(token_file.names(self.path)) - self._ignored
        removed, new = self._blocks.keys() - names, sorted(names - self._blocks.keys())
        for name in removed:
            del self._blocks[name]
        for name in new:
            block = token_file.load(self.path / name)
            if block is not None:
                self._blocks[name] = block
            elif (self.path / name).exists():
                self._ignored.add(name)
        if removed or new:
            self._reindex()
        return bool(removed or new)

    def _reindex(self) -> None:
        self._blocks = dict(sorted(self._blocks.items()))
        parts = [_rows(number, block.keys) for number, block in enumerate(self._blocks.values())]
        self._index = pl.concat([_NONE, *parts]).unique(KEYS, keep="first", maintain_order=True)


def _rows(number: int, keys: Ints | np.ndarray) -> pl.DataFrame:
    columns = {"h0": np.ascontiguousarray(keys[:, 0]), "h1": np.ascontiguousarray(keys[:, 1])}
    return pl.DataFrame(columns).with_columns(pl.lit(number, pl.UInt32).alias("segment"),
                                              pl.int_range(pl.len(), dtype=pl.UInt32).alias("row"))
