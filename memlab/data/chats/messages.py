"""Messages as OpenAI's API takes them: ``{"role": "user", "content": ...}``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlab.data.chats.content import flatten, placeholder, tool_calls
from memlab.data.chats.conversation import ChatMessage, Tally
from memlab.data.chats.times import said_on
from memlab.data.chats.values import object_of, text_of
from memlab.support.errors import MemlabError

_LEFT_OUT = {"system", "developer", "tool", "function"}
_SAID = {"content", "tool_calls", "function_call", "refusal", "audio"}
_THOUGHTS = ("reasoning_content", "reasoning")


def read_message(value: Mapping[str, Any], tally: Tally, where: str) -> ChatMessage | None:
    """Return one message; None for instructions, tools' results and blank ones; raise MemlabError if it is none."""
    role = value.get("role")
    if not isinstance(role, str) or not _SAID & value.keys():
        raise MemlabError('expected an object with "role" and "content"', where=where,
                          fix='write {"role": "user", "content": "..."}')
    if role in _LEFT_OUT:
        tally.add("instructions left out" if role in ("system", "developer") else "results of tools left out")
        return None
    if role not in ("user", "assistant", "model"):
        raise MemlabError(f"there is no role '{role:.40}'", where=where, fix="write user or assistant")
    content = value.get("content")
    if content is not None and not isinstance(content, str | list | dict):
        raise MemlabError("expected text or a list of parts", where=f"{where}, field content")
    tally.add("thoughts of the assistant left out", any(text_of(value.get(key)) for key in _THOUGHTS))
    audio = object_of(value.get("audio"))
    parts = [flatten(content, tally), text_of(value.get("refusal")), placeholder("audio") if audio else "",
             text_of(audio.get("transcript")), *tool_calls(value.get("tool_calls")),
             *tool_calls([value.get("function_call")])]
    text = "\n".join(part for part in parts if part)
    speaker = text_of(value.get("name")) or None
    return ChatMessage("user" if role == "user" else "assistant", text, speaker, said_on(value)) if text else None
