from __future__ import annotations

import pytest
import torch
from gpu.rows import Row, agreement_row, row_of

from memlab.errors import MemlabError

pytestmark = pytest.mark.nightly


def test_a_row_that_is_right_needs_no_advice() -> None:
    assert agreement_row("a", "1", True, "do this", x=1.0) == Row("agreement", "a", "1", numbers={"x": 1.0})
    assert agreement_row("a", "1", False, "do this").advice == "do this"


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
