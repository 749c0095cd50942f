"""Repair of text that is no valid Unicode or holds control characters."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str, replacement: str = "?") -> str:
    """Replace lone surrogates, which JSON and PDF can contain, so that the text can be sent and stored.

    >>> replace_surrogates("a\\x1b[31m\\ud83d")
    'a\\x1b[31m?'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(replacement, text)
    return text


def printable_line(text: str) -> str:
    """Return a text in one line, without control characters and lone surrogates.

    >>> printable_line("Ann\\n moved\\x1b to\\ud83d  Rome.")
    'Ann moved to Rome.'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())
