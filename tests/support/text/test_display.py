from __future__ import annotations

import math
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from memlab.support.text.display import (
    format_count,
    format_interval,
    format_number,
    format_signed,
    is_number,
    safe_line,
    safe_text,
)


@given(st.text(alphabet=st.characters(codec=None)))
def test_nothing_that_steers_a_terminal_or_reverses_a_line_survives(text: str) -> None:
    out = safe_text(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cs", "Co") or c in "\n\t" for c in out)
    assert not set(out) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029")
    out.encode("utf-8")  # no lone surrogate
    assert safe_text(out) == out


def test_letters_of_every_script_and_emoji_stay() -> None:
    text = "שלום — naïve 日本語 👩‍🔬\ttab"
    assert safe_text(text) == text
    assert safe_line(" a \n b\u00a0c ") == "a b c"


def test_numbers_that_are_not_there_read_as_a_dash() -> None:
    for nothing in (None, math.nan, math.inf, "0.5", 10**400):
        assert not is_number(nothing)
        assert format_number(nothing) == format_signed(nothing) == format_count(nothing) == "–"
    assert format_interval(None, 1.0) == ""


def test_a_difference_that_rounds_to_zero_has_no_sign() -> None:
    assert format_signed(-0.0001) == "0.000"
    assert format_signed(-0.0006) == "−0.001"
