"""Text of a message's content parts (OpenAI, Anthropic, Codex); pictures, files and tools are named, not included."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from memlab.chats.conversation import Tally, object_of, objects_of, text_of

_TEXT = {"text", "input_text", "output_text", "refusal", "summary_text", "voice_note"}
_THOUGHTS = {"thinking", "redacted_thinking", "reasoning", "token_budget"}
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call"}
_PICTURES = {"image", "image_url", "input_image"}
_FILES = {"file", "input_file", "document"}


def named(kind: str, name: object = "") -> str:
    """Return the words that stand for something that is no text.

    >>> named("image", "cat.png"), named("file"), named("tool", " a\\nb ")
    ('[image: cat.png]', '[file]', '[tool: a b]')
    """
    label = " ".join(text_of(name).split()).replace("]", ")")[:200]
    return f"[{kind}: {label}]" if label else f"[{kind}]"


def attachment(name: object, mime: object = "") -> str:
    """Name an attachment by its kind.

    >>> attachment("a.png", "image/png"), attachment("b.pdf", "application/pdf"), attachment("c.m4a", "audio/mp4")
    ('[image: a.png]', '[file: b.pdf]', '[audio: c.m4a]')
    """
    kind = text_of(mime).split("/")[0].lower()
    return named(kind if kind in ("image", "audio", "video") else "file", name)


def flatten(content: object, tally: Tally) -> str:
    """Return the text of a content: a text, or a list of texts and parts with a ``type``.

    Thoughts and results of tools are left out, and counted.

    >>> flatten([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "http://x/cat.png"}},
    ...          {"type": "tool_use", "name": "Read"}, {"type": "thinking", "thinking": "..."}], Tally())
    'Look:\\n[image: cat.png]\\n[tool: Read]'
    """
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return text_of(content)
    parts = (part.strip() if isinstance(part, str) else _part(part, tally) for part in content
             if isinstance(part, str | dict))
    return "\n".join(part for part in parts if part)


def tool_calls(value: object) -> list[str]:
    """Name the calls of OpenAI's field ``tool_calls``."""
    return [named("tool", object_of(call.get("function")).get("name") or call.get("name"))
            for call in objects_of(value)]


def _part(part: dict[str, Any], tally: Tally) -> str:
    kind = text_of(part.get("type"))
    if kind in _TEXT or not kind:
        value = part.get("text") or part.get("refusal")
        return text_of(object_of(value).get("value") if isinstance(value, dict) else value)
    if kind in _THOUGHTS:
        tally.add("thoughts of the assistant left out", kind != "token_budget")
        return ""
    if kind in _CALLS:
        return named("tool", part.get("name"))
    if kind.endswith(("_result", "_call_output")):
        tally.add("results of tools left out")
        return ""
    if kind in _PICTURES:
        return named("image", _file_name(part))
    if kind in _FILES:
        return named("file", _file_name(part))
    return named("audio" if "audio" in kind else kind, part.get("name"))


def _file_name(part: dict[str, Any]) -> str:
    """Return the name of a picture or file, or the last step of its address; "" for data that stand in the message."""
    for holder in (part, *(object_of(part.get(key)) for key in ("image_url", "file", "source"))):
        for key in ("filename", "file_name", "title", "name"):
            if name := text_of(holder.get(key)):
                return name
    for value in (part.get("image_url"), object_of(part.get("image_url")).get("url"),
                  object_of(part.get("source")).get("url")):
        address = text_of(value)
        if address and not address.startswith("data:"):
            try:
                return PurePosixPath(urlsplit(address).path).name
            except ValueError:
                return ""
    return ""
