"""Segments and the index over them: what is added is found, alone and again, and what is forgotten is in no file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.stages.search.token_pools import PlacedTokens
from memlab.store import index, segment
from memlab.store.index import MERGED, SegmentIndex
from memlab.store.segment import FORMATS, Arrays
from memlab.store.token_vectors import Precision, make_block
from memlab.support.errors import MemlabError

DIM = 8


def keys_of(numbers: Sequence[int]) -> np.ndarray:
    """Keys of which some have their first half in common."""
    return np.array([[n // 3, n] for n in numbers], np.uint64).reshape(-1, 2)


def vector(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal(DIM).astype(np.float32)


def vectors(numbers: Sequence[int]) -> Arrays:
    return [keys_of(numbers), np.array([vector(n) for n in numbers], np.float32).reshape(-1, DIM)]


def tokens(numbers: Sequence[int], precision: Precision = "int8", length: int = 0) -> Arrays:
    """Tokens of texts, as many of each as its number, or ``length``."""
    matrices = [np.random.default_rng(n).standard_normal((length or n, DIM)).astype(np.float32) for n in numbers]
    ids = [np.arange(len(matrix)) + n for n, matrix in zip(numbers, matrices)]
    return make_block(keys_of(numbers), ids, matrices, precision).arrays


def held(one: SegmentIndex, numbers: Sequence[int], bits: int | None = None) -> dict[int, bytes]:
    """The vectors, or the ids and vectors of tokens, of those numbers that are found."""
    located = one.find(keys_of(numbers))
    at = np.flatnonzero(located.segments >= 0)
    if bits is None:
        return {numbers[i]: row.tobytes() for i, row in zip(at, one.rows(located)[at])}
    found = one.tokens(located.take(at), bits)
    assert (found.keys() == keys_of([numbers[i] for i in at])).all()
    return {numbers[i]: ids.tobytes() + rows.tobytes() for i, (ids, rows) in zip(at, map(found.text, range(len(at))))}


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


arrays_ = st.lists(st.tuples(st.sampled_from(FORMATS), st.integers(0, 5), st.none() | st.integers(1, 3)),
                   min_size=1, max_size=5)


@pytest.mark.parametrize("least", [1, 1 << 20])  # bytes from which on a segment is mapped
@given(shapes=arrays_)
def test_a_segment_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, least: int, shapes: list
                                             ) -> None:
    folder, draw = tmp_path_factory.mktemp("segments"), np.random.default_rng(0)
    arrays = [draw.integers(0, 99, n if width is None else (n, width)).astype(form) for form, n, width in shapes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segment, "MAPPED", least)
        name = segment.write(folder, arrays)
        found = segment.read(folder / name)
    assert found is not None
    assert found.bytes == (folder / name).stat().st_size
    assert segment.count(folder / name) == len(arrays[0])
    for one, other in zip(found.arrays, arrays, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
        assert one.__array_interface__["data"][0] % 4 == 0 or not one.size
    raw = (folder / name).read_bytes()
    for at in {0, 8, 16, 31, 60, len(raw) // 2, len(raw) - 1} & set(range(len(raw))):
        for damaged in (raw[:at], raw[:at] + bytes([raw[at] ^ 64]) + raw[at + 1:], raw + b"\0"):
            (folder / name).write_bytes(damaged)
            assert segment.read(folder / name) is None


step_ = st.lists(st.integers(1, 40), max_size=6, unique=True) | st.frozensets(st.integers(1, 40)) | st.just("open")


@pytest.mark.parametrize("form", ["vectors", "tokens"])
@pytest.mark.parametrize("place", ["disk", "memory"])
@given(steps=st.lists(step_, max_size=30), every=st.integers(2, 5))
def test_any_sequence_of_additions_and_forgetting(form: str, place: str, steps: list, every: int,
                                                  tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("index") if place == "disk" else None
    make, bits = (vectors, None) if form == "vectors" else (tokens, 0)
    there: set[int] = set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "MERGED", every)
        one = SegmentIndex(folder, "{}", own=True)
        for step in steps:
            if step == "open":
                one = SegmentIndex(folder, "{}", own=True) if folder else one
            elif isinstance(step, frozenset):
                there &= step
                one.keep(keys_of(sorted(step)))
            elif new := [n for n in step if n not in there]:
                there |= set(new)
                one.add(make(new))
            expected = SegmentIndex(None)
            if there:
                expected.add(make(sorted(there)))
            assert held(one, range(1, 41), bits) == held(expected, range(1, 41), bits)
            if folder and form == "vectors":
                whole = on_disk(folder)
                assert all((vector(n).tobytes() in whole) == (n in there) for n in range(1, 41))


def test_many_small_additions_make_few_files(tmp_path: Path) -> None:
    one = SegmentIndex(tmp_path, "{}", own=True)
    for number in range(300):
        one.add(vectors([number]))
    assert len(segment.names(tmp_path)) < 3 * MERGED
    assert len(held(one, range(300))) == len(held(SegmentIndex(tmp_path, own=True), range(300))) == 300


def test_what_cannot_be_written_is_kept_in_memory_in_few_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                  ) -> None:
    one = SegmentIndex(tmp_path, "{}", own=True)
    for number in range(MERGED - 1):
        one.add(vectors([number]))
    with monkeypatch.context() as patch:
        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(os, "replace", full)
        for number in range(MERGED - 1, 60):
            with pytest.warns(UserWarning, match="vectors are not saved.*the disk is full"):
                one.add(vectors([number]))
    assert held(one, range(60)).keys() == set(range(60))
    assert len(one._segments) < 3 * MERGED
    assert held(SegmentIndex(tmp_path, own=True), range(60)).keys() == set(range(MERGED - 1))


@pytest.mark.parametrize("error", ["EIO", "EACCES"])
def test_a_segment_that_cannot_be_read_this_time_is_kept_unless_something_is_forgotten(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    SegmentIndex(tmp_path, "{}", own=True).add(vectors([1, 2]))
    real = segment.open_plain

    def fail(_path: Path) -> None:
        raise OSError(getattr(__import__("errno"), error), "no")

    monkeypatch.setattr(segment, "open_plain", fail)
    with pytest.warns(UserWarning, match="cannot be read"):
        one = SegmentIndex(tmp_path, "{}", own=True)
    monkeypatch.setattr(segment, "open_plain", real)
    assert held(SegmentIndex(tmp_path, own=True), [1, 2]).keys() == {1, 2}
    one.keep(keys_of([2]))
    assert segment.names(tmp_path) == []


def test_a_damaged_segment_of_a_memory_is_removed(tmp_path: Path) -> None:
    SegmentIndex(tmp_path, "{}", own=True).add(vectors([1]))
    (name,) = segment.names(tmp_path)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-1])
    with pytest.warns(UserWarning, match="is damaged.*It is removed"):
        assert held(SegmentIndex(tmp_path, own=True), [1]) == {}
    assert [path.name for path in tmp_path.iterdir()] == [segment.IDENTITY]


def test_a_file_that_was_cut_is_named_and_one_that_was_removed_stays_mapped(tmp_path: Path,
                                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "MAPPED", 1)
    one = SegmentIndex(tmp_path, "{}", own=True)
    one.add(tokens([5, 6]))
    (path,) = (tmp_path / name for name in segment.names(tmp_path))
    expected = held(one, [5, 6], 0)
    raw = path.read_bytes()
    path.unlink()
    one.check_files()
    assert held(one, [5, 6], 0) == expected
    path.write_bytes(raw[:-1])
    with pytest.raises(MemlabError, match="was cut while the memory was open"):
        one.check_files()


def resident(folder: Path) -> int:
    """Kilobytes of a folder's files that are in the memory of this process."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            inside = str(folder) in line
        elif inside and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs /proc")
def test_pages_leave_the_process_after_each_piece_and_are_read_again(tmp_path: Path) -> None:
    one, numbers = SegmentIndex(tmp_path, "{}", own=True), list(range(40))
    one.add(tokens(numbers, "int8", 40_000))
    every = one.tokens(one.find(keys_of(numbers)), 0)
    (block,) = every.blocks
    content = block.vectors * block.scales[:, None]
    block.release()
    for _ in range(2):
        for rows, _, some in every.pieces(20_000):
            np.testing.assert_array_equal(some, content[block.starts[rows[0]]:block.starts[rows[-1] + 1]])
            assert resident(tmp_path) < 16_000  # of 25,000 kB
        assert resident(tmp_path) == 0
    unfinished = every.pieces(20_000)
    next(unfinished)
    unfinished.close()
    assert resident(tmp_path) == 0
    placed = PlacedTokens(every).pieces(20_000)
    _, _, stored, at = next(placed)
    assert stored.take(at).vectors.any()
    placed.close()
