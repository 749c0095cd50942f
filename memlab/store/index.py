"""Index over the keys of one fingerprint's segments: on disk (shared, or a memory's own) or in main memory.

Two segments may hold the same key (two processes computed it at the same time); the first by name counts. The folder of
a live memory belongs to one process: there small segments are merged, so that many small additions make few files, and
rows can be forgotten.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints
from memlab.store import segment
from memlab.store.segment import Arrays, Keys, Segment
from memlab.store.token_vectors import TokenBlock, TokenVectors, merge
from memlab.support.errors import MemlabError

MERGED, LARGEST = 16, 8 << 20
"""In a folder of its own, so many segments of similar size are merged, if none has so many bytes."""

_BITS = MERGED.bit_length() - 1


@dataclass(frozen=True)
class Located:
    """Locations of some keys: the segment of each (n,), -1 if it is missing, and its row there (n,)."""

    segments: Ints
    rows: Ints

    def missing(self, keys: Keys) -> Ints:
        """Return the first row of each of the distinct keys (n, w) that are not stored, in order."""
        nowhere = np.flatnonzero(self.segments < 0)
        return nowhere[distinct(keys[nowhere])]

    def take(self, at: Ints) -> Located:
        """Return where some of the keys are."""
        return Located(self.segments[at], self.rows[at])

    @property
    def found(self) -> int:
        """The number of keys that are stored."""
        return int(np.count_nonzero(self.segments >= 0))


@dataclass(frozen=True)
class StoredRows:
    """Vectors that stay in their segments and are gathered when they are indexed by positions (b,): (b, dim)."""

    segments: dict[int, Segment]
    located: Located

    def __len__(self) -> int:
        return len(self.located.rows)

    def __getitem__(self, at: Ints) -> Floats:
        some = self.located.take(at)
        used = np.unique(some.segments)
        width = self.segments[int(used[0])].arrays[1].shape[1] if len(used) else 0
        out = np.empty((len(some.rows), width), np.float32)
        for number in used.tolist():
            here = some.segments == number
            out[here] = self.segments[number].arrays[1][some.rows[here]]
        return out


class SegmentIndex:
    """The segments of one fingerprint and an index over their keys.

    Args:
        path: The folder; None keeps all in memory.
        identity: Describes the fingerprint; empty if the folder says it.
        own: Whether the folder is this process's alone.
        writable: Whether anything may be written.

    Attributes:
        on_disk: Whether there is a folder.
    """

    def __init__(self, path: Path | None, identity: str = "", own: bool = False, writable: bool = True) -> None:
        self.path, self.identity, self.on_disk = path, identity, path is not None
        self._own, self._writable = own, writable
        self._segments: dict[int, Segment] = {}
        self._files: dict[str, int] = {}  # the name of each segment that is on the disk -> its number
        self._ignored: set[str] = set()  # damaged, and could not be moved aside
        self._parts: list[_Part] = []  # each more than twice as long as the next
        self._last = -1
        self._refresh()

    def find(self, keys: Keys) -> Located:
        """Look keys (n, w) up; a shared folder is read again if one is missing, as another process may have stored it.
        """
        located = self._find(keys)
        if not self._own and (located.segments < 0).any() and self._refresh():
            located = self._find(keys)
        return located

    def rows(self, located: Located) -> StoredRows:
        """Return the vectors, or the scores as vectors of one number, of keys that are stored."""
        return StoredRows(dict(self._segments), located)

    def tokens(self, located: Located, bits: int) -> TokenVectors:
        """Return the token vectors of keys that are stored, with codes of so many bits per number, or 0."""
        begins, ends = np.empty(len(located.rows), np.int64), np.empty(len(located.rows), np.int64)
        used, block_of = np.unique(located.segments, return_inverse=True)
        blocks = [TokenBlock.of(self._segments[number].arrays, bits, self._segments[number].release)
                  for number in used.tolist()]
        for number, block in enumerate(blocks):
            here = block_of == number
            rows = located.rows[here]
            begins[here], ends[here] = block.starts[rows], block.starts[rows + 1]
        return TokenVectors(blocks, block_of.astype(np.int64), begins, ends - begins)

    def width(self) -> int | None:
        """Return the length of a stored vector; None while none is stored."""
        if not self._segments:
            self._refresh()
        return next((one.arrays[1].shape[1] for one in self._segments.values()), None)

    def add(self, arrays: Arrays) -> None:
        """Store rows as a new segment: keys (n, w) and float32 (n, dim), or keys and the rest of a ``TokenBlock``.

        In a folder of its own, results that cannot be written stay in memory, with a warning.
        """
        part = _Part.of([(self._add(arrays), arrays[0])])
        while self._parts and len(self._parts[-1].order) <= 2 * len(part.order):
            part = self._parts.pop().join(part)
        self._parts.append(part)
        if self._own and self._merge_small():
            self._reindex()

    def keep(self, keys: Keys) -> None:
        """Forget all rows but those with these keys (m, w): segments with others are written anew, and removed."""
        kept = _Part.of([(0, keys)])
        for number, one in list(self._segments.items()):
            staying = np.flatnonzero(kept.find(one.keys)[0] >= 0)
            if len(staying) < len(one.keys):
                if len(staying):
                    self._add(_take(one.arrays, staying))
                self._remove([number])
        if self._own and self._writable and self.path is not None:
            with segment.store_errors(self.path):  # what could not be read may hold the others too
                for path in self.path.glob("*"):
                    if path.is_file() and path.name not in (segment.IDENTITY, *self._files):
                        path.unlink()
        self._reindex()

    def check_files(self) -> None:
        """Raise MemlabError if a mapped file was truncated: reading its pages would crash."""
        for name, number in self._files.items():
            assert self.path is not None
            try:
                cut = (self.path / name).stat().st_size < self._segments[number].bytes
            except OSError:  # removed: what is mapped stays
                continue
            if cut:
                raise MemlabError(f"{name} was cut while the memory was open", where=str(self.path),
                                  fix="open the memory again, and leave its files alone")

    def _find(self, keys: Keys) -> Located:
        located = Located(np.full(len(keys), -1), np.full(len(keys), -1))
        left = np.arange(len(keys))
        for part in self._parts:
            if not len(left):
                break
            segments, rows = part.find(keys[left])
            located.segments[left], located.rows[left] = segments, rows
            left = left[segments < 0]
        return located

    def _add(self, arrays: Arrays) -> int:
        """Write and hold a segment; return its number."""
        held, name = Segment(arrays, sum(array.nbytes for array in arrays)), None
        if self.path is not None and self._writable:
            try:
                if self.identity:
                    segment.write_identity(self.path, self.identity)
                name = segment.write(self.path, arrays, sync=not self._own)
                if held.bytes >= segment.MAPPED:
                    held = segment.load(self.path / name) or held
            except MemlabError as error:
                if not self._own:
                    raise
                what = "vectors" if len(arrays) == 2 else "token vectors"
                warnings.warn(f"{what} are not saved, and computed again when the memory is loaded: {error}",
                              stacklevel=5)
        return self._hold(held, name)

    def _hold(self, held: Segment, name: str | None) -> int:
        self._last += 1
        self._segments[self._last] = held
        if name is not None:
            self._ignored.discard(name)  # a damaged segment that was written anew has the same name
            self._files[name] = self._last
        return self._last

    def _remove(self, numbers: Sequence[int]) -> None:
        """Let segments go, and remove their files from a folder of its own."""
        for name in [name for name, number in self._files.items() if number in numbers]:
            del self._files[name]
            if self._own and self._writable and self.path is not None:
                with segment.store_errors(self.path):
                    (self.path / name).unlink(missing_ok=True)
        for number in numbers:
            del self._segments[number]

    def _merge_small(self) -> bool:
        """Merge small segments of similar size where there are many; return whether there were."""
        levels: dict[tuple[bool, int], list[int]] = {}
        on_disk = set(self._files.values())
        for number, one in self._segments.items():
            if one.bytes < LARGEST:
                levels.setdefault((number in on_disk, one.bytes.bit_length() // _BITS), []).append(number)
        numbers = next((some for some in levels.values() if len(some) >= MERGED), None)
        if numbers is None:
            return False
        new = self._add(merge_segments([self._segments[number].arrays for number in numbers]))
        if numbers[0] in on_disk and new not in self._files.values():  # there is no room for it
            del self._segments[new]
            return False
        self._remove(numbers)
        self._merge_small()
        return True

    def _refresh(self) -> bool:
        """Follow the segments that came and went on the disk; return whether there were any."""
        if self.path is None:
            return False
        names = set(segment.names(self.path)) - self._ignored
        removed, new = self._files.keys() - names, sorted(names - self._files.keys())
        for name in removed:
            del self._segments[self._files.pop(name)]
        for name in new:
            one = segment.load(self.path / name, "moved aside" if not self._own else
                               "removed" if self._writable else "left")
            if one is not None:
                self._hold(one, name)
            elif (self.path / name).exists():
                self._ignored.add(name)
        if removed or new:
            self._reindex()
        return bool(removed or new)

    def _reindex(self) -> None:
        """Make one part of all segments, by name; those without a name come last."""
        order = [number for _, number in sorted(self._files.items())]
        order += sorted(self._segments.keys() - set(order))
        self._parts = [_Part.of([(number, self._segments[number].keys) for number in order])] if order else []


def merge_segments(parts: Sequence[Arrays]) -> Arrays:
    """Return the rows of several segments as the arrays of one; of equal keys the first counts."""
    if len(parts[0]) > 2:
        arrays: Arrays = merge([TokenBlock.of(part) for part in parts]).arrays
    else:
        arrays = [np.concatenate(some) for some in zip(*parts)]
    rows = distinct(arrays[0])
    return arrays if len(rows) == len(arrays[0]) else _take(arrays, rows)


def distinct(keys: Keys) -> Ints:
    """Return the first row of each of the distinct keys (n, w), in order."""
    order = np.lexsort(keys.T)
    ordered = keys[order]
    first = np.concatenate([np.ones(min(1, len(keys)), bool), (ordered[1:] != ordered[:-1]).any(axis=1)])
    return np.sort(order[first])


def _take(arrays: Arrays, rows: Ints) -> Arrays:
    """Return some rows of a segment."""
    if len(arrays) == 2:
        return [array[rows] for array in arrays]
    return TokenBlock.of(arrays).take(rows).arrays


@dataclass(frozen=True)
class _Part:
    """The keys of some segments, ordered by a number made of each: (n,), (n, w), (n,), (n,)."""

    order: NDArray[np.uint64]
    keys: Keys
    segments: Ints
    rows: Ints

    @classmethod
    def of(cls, keys: Sequence[tuple[int, Keys]]) -> _Part:
        """Take the keys of segments with these numbers; of equal keys the first counts."""
        lengths = [len(some) for _, some in keys]
        whole = np.concatenate([some for _, some in keys])
        by = _order(whole)
        at = np.argsort(by, kind="stable")
        return cls(by[at], whole[at], np.repeat([number for number, _ in keys], lengths)[at],
                   np.concatenate([np.arange(length) for length in lengths])[at])

    def join(self, other: _Part) -> _Part:
        """Return one part with both; of equal keys those of this one count."""
        order = np.concatenate([self.order, other.order])
        at = np.argsort(order, kind="stable")
        return _Part(order[at], np.concatenate([self.keys, other.keys])[at],
                     np.concatenate([self.segments, other.segments])[at], np.concatenate([self.rows, other.rows])[at])

    def find(self, keys: Keys) -> tuple[Ints, Ints]:
        """Return the segment of each key (n,), -1 where it has none, and its row there (n,)."""
        segments, rows = np.full(len(keys), -1), np.full(len(keys), -1)
        by = _order(keys)
        at, left = np.searchsorted(self.order, by), np.arange(len(keys) if len(self.order) else 0)
        while len(left):  # once for each of the keys with one number, of which there are hardly ever two
            place = np.minimum(at[left], len(self.order) - 1)
            left = left[(at[left] < len(self.order)) & (self.order[place] == by[left])]
            same = (self.keys[at[left]] == keys[left]).all(axis=1)
            found = left[same]
            segments[found], rows[found] = self.segments[at[found]], self.rows[at[found]]
            left = left[~same]
            at[left] += 1
        return segments, rows


def _order(keys: Keys) -> NDArray[np.uint64]:
    """Return a number for each key (n, w): the first half of a hash, or of two, mixed."""
    first = np.ascontiguousarray(keys[:, 0])
    return first if keys.shape[1] == 2 else first * np.uint64(0x9E3779B97F4A7C15) + keys[:, 2]
