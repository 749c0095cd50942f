"""Whole numbers in text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.runtime.foreign import whole_number


@given(st.integers(0, 10**18 - 1))
def test_digits_are_read(number: int) -> None:
    assert whole_number(str(number)) == number


@pytest.mark.parametrize("text", ["", " 1", "+1", "1.0", "1_0", "\u0663", "²", "x", "9" * 19, "9" * 6000])
def test_everything_else_is_no_number(text: str) -> None:
    assert whole_number(text) is None
