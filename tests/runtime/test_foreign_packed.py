"""Compressed files are cut at their limit while they are unpacked."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.runtime import foreign
from memlab.runtime.foreign import BoundedStream, unpacked_limit, value_budget


def exhaust(stream: BoundedStream, size: int) -> None:
    while stream.read(size):
        pass


def test_reading_ends_just_past_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "AT_LEAST", 5000)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b" " * 1_000_000))
    packed = path.stat().st_size
    assert unpacked_limit(packed) == 20 * packed < 50_000
    for size in (700, 10**9, -1):
        with gzip.open(path) as inner:
            with pytest.raises(MemlabError, match=r"bomb\.gz: its 0\.0 MB unpack to more than 0 MB"):
                exhaust(BoundedStream(inner, path), size)  # type: ignore[arg-type]
            assert inner.tell() == 20 * packed + 1


def test_what_is_within_the_limit_comes_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "AT_LEAST", 5000)
    path = tmp_path / "whole.gz"
    path.write_bytes(b"")
    stream = BoundedStream(io.BytesIO(b"a" * 5000), path)
    assert b"".join(iter(lambda: stream.read(999), b"")) == b"a" * 5000


def test_a_budget_grows_with_the_packed_size() -> None:
    value_budget(100).spend(2_000_000, "a.gz")
    value_budget(50_000_000).spend(10_000_000, "a.gz")
    for packed, limit in ((100, 2_000_000), (50_000_000, 10_000_000)):
        with pytest.raises(MemlabError, match=rf"a\.gz: it holds more than {limit:,} values.* Fix: unpack it yourself"):
            value_budget(packed).spend(limit + 1, "a.gz")
