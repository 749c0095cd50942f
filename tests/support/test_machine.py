"""Memory of the machine, its lack, and the pause of Python's search for garbage."""

from __future__ import annotations

import ctypes
import gc
import platform
import resource

import numpy as np
import psutil
import pytest
import torch

from memlab.support.errors import MemlabError
from memlab.support.machine import enough_memory, no_collection, release_freed_memory


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


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert release_freed_memory() is False


def test_the_search_for_garbage_pauses_and_goes_on_whatever_happens() -> None:
    @no_collection()
    def fail() -> None:
        with no_collection():
            pass
        assert not gc.isenabled()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert gc.isenabled()


@pytest.mark.parametrize("take", [
    lambda: np.empty(1 << 57), lambda: torch.empty(1 << 57), lambda: bytearray(1 << 60)])
def test_a_lack_of_memory_is_named_with_what_to_make_smaller(take: object) -> None:
    assert callable(take)
    with pytest.raises(MemlabError, match=r"^here: there is not enough memory.*\. Fix: take less$"), \
            enough_memory("take less", "here"):
        take()


@pytest.mark.parametrize("limited", [True, False])
def test_a_library_without_memory_is_told_from_one_that_may_not_be_loaded(
        limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1 << 30 if limited else resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    with pytest.raises(MemlabError if limited else ImportError), enough_memory("take less"):
        raise ImportError("libx.so: failed to map segment from shared object")


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="^something else$"), enough_memory("take less"):
        raise RuntimeError("something else")
