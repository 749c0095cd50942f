"""How a judge's reply is read: by the official rule, or by its first word."""

from __future__ import annotations

import json
import re

_WORD = re.compile(r"[\W_]*(?:(?:verdict|answer|correct|label|right|judgement|judgment)\b[\W_]*)?(yes|no)\b",
                   re.IGNORECASE)
_KEYS = ("verdict", "answer", "correct", "label", "right", "judgement", "judgment")
_SAYS = {"yes": True, "true": True, "no": False, "false": False}


def official(reply: str) -> bool:
    """LongMemEval's rule: right if "yes" stands anywhere in the reply, in any case, inside another word too.

    >>> official("Yes."), official("No, that was yesterday."), official("I cannot say")
    (True, True, False)
    """
    return "yes" in reply.lower()


def first_word(reply: str) -> bool | None:
    """Right or wrong if the reply begins with yes or no, also as "Verdict: yes" or as JSON; null if it does not.

    >>> first_word("**No**, that was yesterday."), first_word('{"verdict": "yes"}'), first_word("Yesterday")
    (False, True, None)
    """
    match = _WORD.match(reply)
    if match:
        return match[1].lower() == "yes"
    start, end = reply.find("{"), reply.rfind("}")
    if start == -1 or end < start:
        return None
    try:
        said = json.loads(reply[start:end + 1])
    except (ValueError, RecursionError):
        return None
    for key in _KEYS:
        if key in said:
            return _SAYS.get(str(said[key]).strip().lower())
    return None
