"""Texts cut to a chat model's window, and JSON read from its replies."""

from __future__ import annotations

import json
from typing import Any

from memlab.models.chat.json_schema import mend
from memlab.models.chat.protocol import Chat, Completion

MARGIN = 64
"""Tokens left for what a chat template puts around the messages."""


def trim(chat: Chat, text: str, room: int) -> str:
    """Return the beginning of a text, cut to at most ``room`` tokens; an empty text if there is no room."""
    text = text if room > 0 else ""
    while text and (size := chat.count(text)) > room:
        text = text[: min(len(text) - 1, len(text) * room // size)]
    return text


def parse_json(reply: Completion, schema: str) -> Any:
    """Return the JSON value in a reply, without words around it; None if none fits the schema.

    >>> parse_json(Completion('Sure: {"k": 1}', 0, 0, 0.0), '{"type": "object"}')
    {'k': 1}
    """
    text = mend(reply.answer, schema)
    return None if text is None else json.loads(text)
