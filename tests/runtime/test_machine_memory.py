"""Lack of memory is an error of the user, and no other error is taken for it."""

from __future__ import annotations

import resource

import numpy as np
import pytest
import torch

from memlab.errors import MemlabError
from memlab.runtime.machine import enough_memory


@pytest.mark.parametrize("take", [
    lambda: np.empty(1 << 57), lambda: torch.empty(1 << 57), lambda: bytearray(1 << 60)])
def test_it_is_named_with_what_to_make_smaller(take: object) -> None:
    assert callable(take)
    with pytest.raises(MemlabError, match=r"^here: there is not enough memory.*\. Fix: take less$"), \
            enough_memory("take less", "here"):
        take()


@pytest.mark.parametrize("limited", [True, False])
def test_a_library_that_is_not_loaded_for_want_of_memory_is_told_from_one_that_may_not_be(
        limited: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    limit = 1 << 30 if limited else resource.RLIM_INFINITY
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, resource.RLIM_INFINITY))
    with pytest.raises(MemlabError if limited else ImportError), enough_memory("take less"):
        raise ImportError("libx.so: failed to map segment from shared object")


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="^something else$"), enough_memory("take less"):
        raise RuntimeError("something else")
