"""Lack of memory is an error of the user, and no other error is taken for it."""

from __future__ import annotations

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


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="^something else$"), enough_memory("take less"):
        raise RuntimeError("something else")
