"""Data made safe to print: a benchmark's text must not steer the terminal."""

from __future__ import annotations

import unicodedata

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
