"""What a chat model is told when it writes a memory's context, and what is kept of its reply."""

from __future__ import annotations

import re
import unicodedata

INSTRUCTION = """You write notes for a search index of conversations. Below is one conversation. You will be \
shown one passage of it. In one or two short sentences, say what the passage is about: who says it, on which \
matter of this conversation, and which person, place or thing words like "it", "there" or "that one" stand for. \
Name names. Use only what the conversation says, add no advice, and do not repeat the passage. Reply with these \
sentences alone.

Conversation:
"""

ASKED = "Passage:\n{passage}\n\nIts note, in one or two short sentences:"

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)?", re.DOTALL)
_LEAD_IN = re.compile(r"^(?:sure|certainly|of course)\b[,.!]?\s*|"
                      r"^(?:here(?:'s| is| are)\b[^:.]{0,80}|note|context|summary):\s*", re.IGNORECASE)
_REFUSAL = re.compile(r"^(?:(?:i'm|i am) (?:sorry|unable|not able)|sorry\b|i (?:cannot|can't|won't)\b|as an ai\b)",
                      re.IGNORECASE)
_END = re.compile(r"(?<!\b[A-Z])(?<!\bDr)(?<!\bMr)(?<!\bMs)(?<!\bSt)(?<!\bMrs)(?<!\be\.g)(?<!\bi\.e)"
                  r"[.!?]+[\"')\]]*\s+(?=\S)")


def cleaned(reply: str, sentences: int, max_words: int) -> str:
    """Return the first sentences of a reply in one line, without control characters; "" for a refusal in words.

    >>> cleaned("Sure! Here is the note:\\nAnn saw Dr. Ray\\x1b[31m in Rome.  She liked it. More.", 2, 50)
    'Ann saw Dr. Ray in Rome. She liked it.'
    >>> cleaned("I'm sorry, but I can't help with that.", 2, 50)
    ''
    """
    text = _ESCAPES.sub("", reply)
    text = "".join(" " if c.isspace() else c for c in text if c.isspace() or unicodedata.category(c)[0] != "C")
    text = " ".join(text.replace("\u2019", "'").split())
    for _ in range(2):  # "Sure! Here is the note:"
        text = _LEAD_IN.sub("", text.strip("\"' ")).strip("\"' ")
    if _REFUSAL.search(text):
        return ""
    ends = [m.end() for m in _END.finditer(text)]
    text = text[: ends[sentences - 1]] if len(ends) >= sentences else text
    return " ".join(text.split()[:max_words])
