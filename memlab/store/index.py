"""Index over the keys of one fingerprint's segments, kept in memory for the process.

Two segments may hold the same key (two processes computed it at the same time); the first by name counts.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from memlab.models.protocols import Floats, Ints
from memlab.store.segments import load, segment_names, write, write_identity


class SegmentVanished(Exception):
    """A segment that was in the index is gone: merged, pruned or found damaged meanwhile."""


class ArrayCache:
    """Values of the segments used last, up to a number of bytes, so that a second call reads no file."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._arrays: OrderedDict[Path, Floats] = OrderedDict()

    def get(self, path: Path) -> Floats | None:
        """Return the values of a segment, None if they are not in memory."""
        if path in self._arrays:
            self._arrays.move_to_end(path)
        return self._arrays.get(path)

    def put(self, path: Path, values: Floats) -> None:
        """Add values; those unused for longest are dropped, except that the newest always stays."""
        self.drop(path)
        self._arrays[path] = values
        self.size += values.nbytes
        while self.size > self.limit and len(self._arrays) > 1:
            self.size -= self._arrays.popitem(last=False)[1].nbytes

    def drop(self, path: Path) -> None:
        """Drop the values of a segment."""
        if path in self._arrays:
            self.size -= self._arrays.pop(path).nbytes


class SegmentIndex:
    """The segments of one fingerprint and an index over their keys."""

    def __init__(self, path: Path, keys: Sequence[str], arrays: ArrayCache, identity: str) -> None:
        self.path, self.keys, self.identity = path, list(keys), identity
        self._arrays = arrays
        self._segments: dict[str, pl.DataFrame] = {}  # name -> its keys, one row each, in the order of its values
        self._ignored: set[str] = set()
        self._reindex()

    def find(self, wanted: pl.DataFrame) -> pl.DataFrame:
        """Look keys up.

        ``wanted`` has the key columns and ``at``, any integer; the result has the columns at, segment, row, with
        nulls for keys that are not stored. The disk is read only if a key is missing, since another process may
        have stored it.
        """
        located = wanted.join(self._index, on=self.keys, how="left")
        if located["segment"].null_count() and self._refresh():
            located = wanted.join(self._index, on=self.keys, how="left")
        return located

    def read(self, located: pl.DataFrame) -> Iterator[tuple[Ints, Floats]]:
        """Yield (at (b,), values (b, ...)) for each segment that holds keys; raises SegmentVanished if one is gone."""
        at, segments, rows = (located[c].to_numpy() for c in ("at", "segment", "row"))
        order = np.argsort(segments, kind="stable")
        at, segments, rows = at[order], segments[order], rows[order]
        names = list(self._segments)
        edges = np.flatnonzero(segments[1:] != segments[:-1]) + 1
        for start, end in pairwise([0, *edges.tolist(), len(segments)]) if len(segments) else ():
            yield at[start:end].astype(np.int64), self._values(names[segments[start]])[rows[start:end]]

    def width(self) -> int | None:
        """Return the length of a stored vector; None while none is stored."""
        if not self._segments:
            self._refresh()
        try:
            return next((self._values(name).shape[1] for name in self._segments), None)
        except SegmentVanished:  # the model is asked instead
            return None

    def add(self, keys: pl.DataFrame, values: Floats) -> None:
        """Store rows as a new segment: keys (n rows) and values (n,) or (n, dim)."""
        shape = pl.Array(pl.Float32, values.shape[1]) if values.ndim == 2 else pl.Float32()
        write_identity(self.path, self.identity)
        name = write(self.path, keys.with_columns(pl.Series("value", values, dtype=shape)))
        self._segments[name] = keys
        self._ignored.discard(name)  # a damaged segment that was written anew has the same name
        self._arrays.put(self.path / name, values)
        self._reindex()

    def _values(self, name: str) -> Floats:
        values = self._arrays.get(self.path / name)
        if values is None:
            rows = load(self.path / name)
            if rows is None:
                self._segments.pop(name, None)
                self._reindex()
                raise SegmentVanished(name)
            values = self._cache(name, rows)
        return values

    def _cache(self, name: str, rows: pl.DataFrame) -> Floats:
        values = rows["value"].to_numpy()
        self._arrays.put(self.path / name, values)
        return values

    def _refresh(self) -> bool:
        """Follow the segments that came and went on the disk; return whether there were any."""
        names = set(segment_names(self.path)) - self._ignored
        removed, new = self._segments.keys() - names, sorted(names - self._segments.keys())
        for name in removed:
            self._segments.pop(name)
            self._arrays.drop(self.path / name)
        for name in new:
            rows = load(self.path / name)
            if rows is None:
                if (self.path / name).exists():  # could not be moved aside: do not read it again and again
                    self._ignored.add(name)
            else:
                self._cache(name, rows)
                self._segments[name] = rows.select(self.keys)
        if removed or new:
            self._reindex()
        return bool(removed or new)

    def _reindex(self) -> None:
        numbers = {name: i for i, name in enumerate(self._segments)}
        schema = {**dict.fromkeys(self.keys, pl.UInt64), "segment": pl.UInt32, "row": pl.UInt32}
        parts = [self._segments[name].with_columns(
            pl.lit(numbers[name], pl.UInt32).alias("segment"),
            pl.int_range(pl.len(), dtype=pl.UInt32).alias("row")) for name in sorted(numbers)]
        self._index = pl.concat([pl.DataFrame(schema=schema), *parts]).unique(self.keys, keep="first")
