"""Messages of ChatGPT's export: kinds of content, pictures, what is hidden.

The structure is not documented by OpenAI; it is read as public exports of 2023 to 2026 show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlab.data.chats.chatgpt_marks import without_marks
from memlab.data.chats.content import attachment, flatten, placeholder
from memlab.data.chats.conversation import ChatMessage, Tally
from memlab.data.chats.times import said_on
from memlab.data.chats.values import first_text, object_of, objects_of, text_of

_SPOKEN = {"text", "multimodal_text", "code"}


def read_message(node: Mapping[str, Any], tally: Tally, _: str) -> ChatMessage | None:
    """Return what was said in a node of the tree; None for what ChatGPT does not show, and for tools."""
    message = object_of(node.get("message"))
    content, metadata = object_of(message.get("content")), object_of(message.get("metadata"))
    role, parts = first_text(message, "author.role"), content.get("parts")
    kind, time = text_of(content.get("content_type")) or "text", said_on(message)
    if role == "tool":
        pictures = [p for p in objects_of(parts) if p.get("content_type") == "image_asset_pointer"]
        tally.add("results of tools left out", not pictures)
        return ChatMessage("assistant", flatten(pictures, tally), None, time) if pictures else None
    if role not in ("user", "assistant") or kind not in _SPOKEN:
        tally.add("messages of other kinds left out", bool(message), kind=kind)
    elif role == "assistant" and text_of(message.get("recipient")) not in ("", "all"):
        return ChatMessage("assistant", placeholder("tool", message["recipient"]), None, time)
    elif text := _text(parts if kind != "code" else content.get("text"), objects_of(metadata.get("attachments")), tally):
        text = without_marks(text, tally).strip() if role == "assistant" or "\ue200" in text else text
        speaker = first_text(message, "author.name") if role == "user" else ""  # in a group chat
        return ChatMessage("user" if role == "user" else "assistant", text, speaker or None, time) if text else None
    return None


def _text(parts: object, files: list[dict[str, Any]], tally: Tally) -> str:
    """Return the text of a message's parts, and the names of its attachments, of which pictures are parts too."""
    ids = [key for file in files if (key := text_of(file.get("id")))]
    if isinstance(parts, list):
        parts = [part for part in parts if not any(key in first_text(part, "asset_pointer") for key in ids)]
    names = (attachment(f.get("name") or f.get("id"), f.get("mime_type") or f.get("mimeType")) for f in files)
    return "\n".join(filter(None, [flatten(parts, tally), *names]))
