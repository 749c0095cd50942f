from __future__ import annotations

import math
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from memlab.support.text import display


@given(st.text(alphabet=st.characters(codec=None)))
def test_nothing_that_steers_a_terminal_or_reverses_a_line_survives(text: str) -> None:
    out = display.safe_text(text)
    assert all(unicodedata.category(c) not in ("Cc", "Cs", "Co") or c in "\n\t" for c in out)
    assert not set(out) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u2028\u2029")
    out.encode("utf-8")  # no lone surrogate
    assert display.safe_text(out) == out


def test_letters_of_every_script_and_emoji_stay() -> None:
    text = "שלום — naïve 日本語 👩‍🔬\ttab"
    assert display.safe_text(text) == text
    assert display.safe_line(" a \n b\u00a0c ") == "a b c"


def test_numbers_that_are_not_there_read_as_a_dash() -> None:
    for nothing in (None, math.nan, math.inf, "0.5", 10**400):
        assert not display.is_number(nothing)
        assert display.format_number(nothing) == display.format_signed(nothing) == display.format_count(nothing) == "–"
    assert display.format_interval(None, 1.0) == ""


def test_a_difference_that_rounds_to_zero_has_no_sign() -> None:
    assert display.format_signed(-0.0001) == "0.000"
    assert display.format_signed(-0.0006) == "−0.001"
