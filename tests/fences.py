"""Texts between the marks of a prompt."""

from __future__ import annotations

import re


def inside(text: str, name: str) -> str:
    """Return the text of a fenced part; all parts have the mark that closes the last of them."""
    marks = re.findall(r"</[A-Z]+ ([0-9a-f]+)>", text)
    assert marks, f"no fenced part in {text!r}"
    return text.partition(f"<{name} {marks[-1]}>\n")[2].partition(f"\n</{name} {marks[-1]}>")[0]
