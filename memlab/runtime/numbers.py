"""Whole numbers in text that people or files give."""

from __future__ import annotations

DIGITS = 18
"""Digits at most, so that each number fits into 64 bits; Python itself refuses those of thousands of digits."""


def whole_number(text: str) -> int | None:
    """Return the number that some ASCII digits write; None for any other text.

    >>> whole_number("042"), whole_number("-1"), whole_number("²"), whole_number("9" * 5000)
    (42, None, None, None)
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= DIGITS else None
