"""One fingerprint's folder of segments, with an index over their keys that is kept for the process.

Two segments may hold the same key (two processes made it at the same time); the first by name counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from memlab.models.protocols import Floats, Ints
from memlab.store.segments import IDENTITY, listed, load, write, write_file


class Gone(Exception):
    """A segment that was listed is no longer there: merged, pruned or found damaged meanwhile."""


class Arrays:
    """Values of the segments used last, up to a number of bytes, so that a second call reads no file."""

    def __init__(self, limit: int) -> None:
        self.limit, self.held = limit, 0
        self._arrays: OrderedDict[Path, Floats] = OrderedDict()

    def get(self, path: Path) -> Floats | None:
        """Return the values of a segment if they are held."""
        if path in self._arrays:
            self._arrays.move_to_end(path)
        return self._arrays.get(path)

    def put(self, path: Path, values: Floats) -> None:
        """Hold values; those unused for longest make room, except that the newest always stays."""
        self.drop(path)
        self._arrays[path] = values
        self.held += values.nbytes
        while self.held > self.limit and len(self._arrays) > 1:
            self.held -= self._arrays.popitem(last=False)[1].nbytes

    def drop(self, path: Path) -> None:
        """Forget a segment."""
        if path in self._arrays:
            self.held -= self._arrays.pop(path).nbytes


class Folder:
    """The segments of one fingerprint, with an index over their keys that is kept for the process."""

    def __init__(self, path: Path, keys: Sequence[str], arrays: Arrays, identity: str) -> None:
        self.path, self.keys, self.identity = path, list(keys), identity
        self._arrays = arrays
        self._segments: dict[str, pl.DataFrame] = {}  # name -> its keys, one row each, in the order of its values
        self._ignored: set[str] = set()
        self._reindex()

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """Look keys up.

        ``wanted`` has the key columns and ``at``, any integer; the answer has the columns at, segment, row, with
        nulls where a key is unknown. The disk is looked at only if something is unknown, since another process
        may have stored it.
        """
        found = wanted.join(self._index, on=self.keys, how="left")
        if found["segment"].null_count() and self._refresh():
            found = wanted.join(self._index, on=self.keys, how="left")
        return found

    def take(self, found: pl.DataFrame) -> Iterator[tuple[Ints, Floats]]:
        """Yield (at (b,), values (b, ...)) a segment for keys that were found; raises Gone if one vanished."""
        at, segments, rows = (found[c].to_numpy() for c in ("at", "segment", "row"))
        order = np.argsort(segments, kind="stable")
        at, segments, rows = at[order], segments[order], rows[order]
        names = list(self._segments)
        edges = np.flatnonzero(segments[1:] != segments[:-1]) + 1
        for start, end in pairwise([0, *edges.tolist(), len(segments)]) if len(segments) else ():
            yield at[start:end].astype(np.int64), self._values(names[segments[start]])[rows[start:end]]

    def width(self) -> int | None:
        """Return how many numbers a stored vector has; None while none is stored."""
        if not self._segments:
            self._refresh()
        try:
            return next((self._values(name).shape[1] for name in self._segments), None)
        except Gone:  # the model is asked instead
            return None

    def add(self, keys: pl.DataFrame, values: Floats) -> None:
        """Store rows as a new segment: keys (n rows) and values (n,) or (n, dim)."""
        shape = pl.Array(pl.Float32, values.shape[1]) if values.ndim == 2 else pl.Float32()
        if not (self.path / IDENTITY).exists():
            write_file(self.path / IDENTITY, self.identity.encode())
        name = write(self.path, keys.with_columns(pl.Series("value", values, dtype=shape)))
        self._segments[name] = keys
        self._ignored.discard(name)  # a damaged segment that was made anew has the same name
        self._arrays.put(self.path / name, values)
        self._reindex()

    def _values(self, name: str) -> Floats:
        values = self._arrays.get(self.path / name)
        if values is None:
            rows = load(self.path / name)
            if rows is None:
                self._segments.pop(name, None)
                self._reindex()
                raise Gone(name)
            values = self._hold(name, rows)
        return values

    def _hold(self, name: str, rows: pl.DataFrame) -> Floats:
        values = rows["value"].to_numpy()
        self._arrays.put(self.path / name, values)
        return values

    def _refresh(self) -> bool:
        """Take notice of segments that came and went; tell whether there were any."""
        now = set(listed(self.path)) - self._ignored
        gone, new = self._segments.keys() - now, sorted(now - self._segments.keys())
        for name in gone:
            self._segments.pop(name)
            self._arrays.drop(self.path / name)
        for name in new:
            rows = load(self.path / name)
            if rows is None:
                if (self.path / name).exists():  # could not be moved aside: do not read it again and again
                    self._ignored.add(name)
            else:
                self._hold(name, rows)
                self._segments[name] = rows.select(self.keys)
        if gone or new:
            self._reindex()
        return bool(gone or new)

    def _reindex(self) -> None:
        numbers = {name: i for i, name in enumerate(self._segments)}
        schema = {**dict.fromkeys(self.keys, pl.UInt64), "segment": pl.UInt32, "row": pl.UInt32}
        parts = [self._segments[name].with_columns(
            pl.lit(numbers[name], pl.UInt32).alias("segment"),
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("row")) for name in sorted(numbers)]
        self._index = pl.concat([pl.DataFrame(schema=schema), *parts]).unique(self.keys, keep="first")
