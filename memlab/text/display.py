"""Data made safe to print: a benchmark's text must not steer the terminal."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

_UNSAFE = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}  # controls, invisible formats (text direction), surrogates, separators


def plain(text: str, width: int | None = None) -> str:
    r"""Escape everything invisible except spaces, line breaks as ``\n``; cut to ``width`` characters if given.

    >>> plain("a\x1b[31mred\u202e\nb")
    'a\\x1b[31mred\\u202e\\nb'
    >>> plain("a long text", width=6)
    'a lon…'
    """
    if width is not None and len(text) > width:
        text = text[: width - 1] + "…"
    return "".join(c if unicodedata.category(c) not in _UNSAFE else ascii(c)[1:-1] for c in text)


def plain_lines(text: str) -> str:
    r"""Like :func:`plain`, keeping line breaks: for messages of several lines.

    >>> plain_lines("one\ntwo\x07")
    'one\ntwo\\x07'
    """
    return "\n".join(plain(line) for line in text.split("\n"))


EMPTY = "–"
"""What stands where there is no number."""


def clean(text: object) -> str:
    """Make control characters visible and harmless; letters of every script stay as they are.

    Benchmarks hold pasted terminal output and direction marks: an escape sequence must not colour a console,
    an override must not reverse the rest of a line.

    >>> clean("red \\x1b[31m, reversed \\u202e, two\\nlines")
    'red ⟨U+001B⟩[31m, reversed ⟨U+202E⟩, two\\nlines'
    """
    given = str(text)
    if given.replace("\n", "").replace("\t", "").isprintable():  # nearly every text; a letter at a time is slow
        return given
    return "".join(c if c.isprintable() or c in "\n\t" else _visible(c) for c in given)


def _visible(char: str) -> str:
    kind = unicodedata.category(char)
    if kind in ("Zs", "Zl", "Zp"):
        return " "
    if kind == "Cf" and unicodedata.bidirectional(char) in ("BN", "ON"):
        return char if char in "\u200c\u200d" else ""  # joiners shape letters and emoji; the rest shows nothing
    return f"⟨U+{ord(char):04X}⟩" if kind in ("Cf", "Cc") else "\ufffd"


def one_line(text: object) -> str:
    """Clean a text and put it on one line.

    >>> one_line("a\\n  b")
    'a b'
    """
    return " ".join(clean(text).split())


def known(value: Any) -> bool:
    """Tell whether a figure is there: neither None nor NaN.

    >>> known(0), known(None), known(float("nan"))
    (True, False, False)
    """
    return isinstance(value, int | float) and math.isfinite(value)


def figure(value: Any, places: int = 3) -> str:
    """Write a rate or score with fixed places, a count without.

    >>> figure(0.93617), figure(12), figure(None)
    ('0.936', '12', '–')
    """
    if not known(value):
        return EMPTY
    return f"{value:,}" if isinstance(value, int) else f"{value:.{places}f}"


def signed(value: Any, places: int = 3) -> str:
    """Write a difference with its sign.

    >>> signed(0.0312), signed(-0.5), signed(0.0)
    ('+0.031', '−0.500', '0.000')
    """
    if not known(value):
        return EMPTY
    text = f"{abs(value):.{places}f}"
    return text if float(text) == 0 else ("+" if value > 0 else "−") + text


def interval(low: Any, high: Any, write: Any = figure) -> str:
    """Write an interval.

    >>> interval(0.9, 0.95)
    '0.900 to 0.950'
    """
    return f"{write(low)} to {write(high)}" if known(low) and known(high) else ""


def chance(p: Any) -> str:
    """Write a p-value; three places are all that anybody reads.

    >>> chance(0.0304), chance(1e-7), chance(None)
    ('0.030', '< 0.001', '–')
    """
    if not known(p):
        return EMPTY
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(value: Any) -> str:
    """Write a mean count, such as tokens or K.

    >>> count(1234.5), count(9.96), count(None)
    ('1,234', '10.0', '–')
    """
    if not known(value):
        return EMPTY
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}"


def duration(seconds: Any) -> str:
    """Write a time.

    >>> duration(0.04), duration(12.34), duration(125)
    ('0.04 s', '12.3 s', '2 min 05 s')
    """
    if not known(seconds):
        return EMPTY
    if seconds >= 60:
        return f"{int(seconds) // 60:,} min {int(seconds) % 60:02d} s"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.2f} s"
