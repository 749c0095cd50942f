"""Small numbers in words and digits."""

from __future__ import annotations

_UNITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
          "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def in_words(number: int) -> str:
    """Write a number from 0 to 99 in words.

    >>> in_words(7), in_words(40), in_words(42)
    ('seven', 'forty', 'forty-two')
    """
    if number < 20:
        return _UNITS[number]
    tens, unit = divmod(number, 10)
    return _TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")


WORDS = {in_words(n): n for n in sorted(range(100), key=lambda n: (-len(in_words(n)), n))}
"""Words -> number, longer ones first, so that "twenty-one" is found before "twenty"."""

SPELT = "|".join(WORDS)
"""All of them as alternatives of a regular expression."""
