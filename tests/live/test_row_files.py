"""Files of rows: what is written is there, and what nothing accounts for is overwritten or cut off."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.live import row_files
from memlab.live.row_files import clear_rows, gaps, write_rows

SPANS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)).map(lambda pair: (min(pair), max(pair))))


@given(used=SPANS, end=st.integers(0, 12))
def test_gaps_are_what_no_span_covers(used: list[tuple[int, int]], end: int) -> None:
    spans = np.array(sorted(used), np.int64).reshape(-1, 2)
    free = gaps(spans[:, 0], spans[:, 1], end).tolist()
    rows = [row for first, stop in free for row in range(first, stop)]
    assert rows == [row for row in range(end) if not any(first <= row < stop for first, stop in used)]
    assert all(first < stop for first, stop in free)


@pytest.mark.parametrize("piece", [1, 5, 1 << 20])
@given(used=SPANS, written=st.integers(0, 14))
def test_used_rows_stay_and_others_are_zeros(piece: int, used: list[tuple[int, int]], written: int,
                                             tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("rows") / "file"
    write_rows(path, 3, [(row, bytes([row + 1] * 3)) for row in range(written)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_files, "PIECE", piece)
        clear_rows(path, 3, sorted(used))
    end = min(written, max((stop for _, stop in used), default=0))
    expected = [bytes([row + 1] * 3) if any(a <= row < b for a, b in used) else bytes(3) for row in range(end)]
    assert path.read_bytes() == b"".join(expected)


def test_a_file_that_is_right_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_rows(path, 2, [(0, b"ab"), (2, b"cd")])
    monkeypatch.setattr(os, "pwrite", None)
    monkeypatch.setattr(os, "ftruncate", None)
    clear_rows(path, 2, [(0, 1), (2, 3)])
    clear_rows(tmp_path / "none", 2, [(0, 1)])
    assert path.read_bytes() == b"ab\0\0cd"
    assert not (tmp_path / "none").exists()


def test_a_span_far_behind_the_end_of_the_file_takes_no_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_rows(path, 2, [(0, b"ab"), (1, b"cd")])
    clear_rows(path, 2, [(0, 1), (1 << 50, (1 << 50) + 1)])
    assert path.read_bytes() == b"ab\0\0"


def test_a_disk_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(MemlabError, match="store cannot be written"):
        write_rows(tmp_path / "folder" / "file", 2, [(0, b"ab")])
