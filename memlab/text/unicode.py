"""Repair of text that is no valid Unicode."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str, replacement: str = "?") -> str:
    """Return a text that can be sent and stored: lone surrogates, which JSON and PDF can hold, are replaced.

    >>> replace_surrogates("a\\x1b[31m\\ud83d")
    'a\\x1b[31m?'
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(replacement, text)
    return text
