from __future__ import annotations

import pytest
import torch
from gpu.rows import Row, row_of

from memlab.support.errors import MemlabError

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize(("error", "result", "advice"), [
    (torch.OutOfMemoryError("x"), "the device ran out of memory", "nvidia-smi"),
    (MemlabError("no weights", fix="give some"), "no weights", "give some"),
    (RuntimeError("CUDA error: bad address\nand more"), "RuntimeError: CUDA error: bad address", "report")])
def test_a_check_that_fails_is_off_and_says_how(error: Exception, result: str, advice: str) -> None:
    def check() -> Row:
        raise error

    row = row_of("speed", "a", check)
    assert (row.state, row.result) == ("off", result)
    assert advice in row.advice
