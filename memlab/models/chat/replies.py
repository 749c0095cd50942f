"""What all stages need that ask a chat model: text cut to its window, JSON read from a reply, failures told."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from typing import Any

from memlab.models.chat.json_schema import fault, mend
from memlab.models.chat.protocol import Chat, Completion

MARGIN = 64
"""Tokens left for what a chat template puts around the messages."""

told: Counter[tuple[str, str]] = Counter()
"""What went another way than asked since this process began: how many, under (what, "number"), of how many that were
tried, under (what, "of"). A run writes what its stages added into its manifest."""


def trimmed(chat: Chat, text: str, room: int) -> str:
    """Return a beginning of a text that has at most ``room`` tokens; nothing where there is no room."""
    text = text if room > 0 else ""
    while text and (size := chat.count(text)) > room:
        text = text[: min(len(text) - 1, len(text) * room // size)]
    return text


def json_in(reply: Completion, schema: str) -> Any:
    """Return the value of a reply that fits a JSON schema, taken out of words around it; None where none does.

    >>> json_in(Completion('Sure: {"k": 1}', 0, 0, 0.0), '{"type": "object"}')
    {'k': 1}
    """
    text = reply.text if fault(reply.text, schema) is None else mend(reply.text, schema)
    return None if text is None else json.loads(text)


def tell(number: int, total: int, what: str) -> None:
    """Warn that ``number`` of ``total`` went another way than asked, unless none did, and count it."""
    note(number, total, what)
    if number:
        warnings.warn(f"{number:,} of {total:,} {what}", stacklevel=3)


def note(number: int, total: int, what: str) -> None:
    """Count in ``told`` what needs no warning; what it is ends at a semicolon, behind which its consequence stands."""
    if number:
        name = what.partition(";")[0]
        told.update({(name, "number"): number, (name, "of"): total})


def listed(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return counts such as ``told`` for a manifest.

    >>> listed(Counter({("replies could not be read", "number"): 2, ("replies could not be read", "of"): 40}))
    {'replies could not be read': {'number': 2, 'of': 40}}
    """
    return {what: {kind: counts[what, kind] for kind in ("number", "of")} for what in sorted({w for w, _ in counts})}
