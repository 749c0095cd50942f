"""Freed memory goes back to the system where the C library is glibc, and nothing breaks where it is not."""

from __future__ import annotations

import ctypes
import platform

import numpy as np
import psutil
import pytest

from memlab.runtime.machine import release_freed_memory


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can give freed memory back")
def test_small_blocks_that_were_freed_go_back_to_the_system() -> None:
    process = psutil.Process()
    blocks = [np.ones(2000) for _ in range(8000)]  # 128 MB, too small for maps of their own
    kept = blocks[::100]
    full = process.memory_info().rss
    del blocks
    assert release_freed_memory()
    assert process.memory_info().rss < full - 60e6
    assert all(block.all() for block in kept)


@pytest.mark.parametrize("error", [AttributeError, OSError, TypeError])
def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    def fail(_name: None) -> None:
        raise error

    monkeypatch.setattr(ctypes, "CDLL", fail)
    assert release_freed_memory() is False
