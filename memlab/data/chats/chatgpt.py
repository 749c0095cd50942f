"""Messages of ChatGPT's export: kinds of content, pictures, what is hidden.

The structure is not documented by OpenAI; it is read as public exports of 2023 to 2026 show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memlab.data.chats.chatgpt_marks import without_marks
from memlab.data.chats.content import attachment, placeholder
from memlab.data.chats.conversation import ChatMessage, Tally
from memlab.data.chats.times import said_on
from memlab.data.chats.values import first_text, object_of, objects_of, text_of

_SPOKEN = {"text", "multimodal_text", "code"}


def read_message(node: Mapping[str, Any], tally: Tally, _: str) -> ChatMessage | None:
    """Return what was said in a node of the tree; None for what ChatGPT does not show, and for tools."""
    message = object_of(node.get("message"))
    content, metadata = object_of(message.get("content")), object_of(message.get("metadata"))
    role = first_text(message, "author.role")
    kind, time = text_of(content.get("content_type")) or "text", said_on(message)
    if role == "tool":
        pictures = [p for p in objects_of(content.get("parts")) if p.get("content_type") == "image_asset_pointer"]
        tally.add("results of tools left out", not pictures)
        return ChatMessage("assistant", "\n".join(map(_pointer, pictures)), None, time) if pictures else None
    if role not in ("user", "assistant") or kind not in _SPOKEN:
        tally.add("messages of other kinds left out", bool(message), kind=kind)
    elif role == "assistant" and text_of(message.get("recipient")) not in ("", "all"):
        return ChatMessage("assistant", placeholder("tool", message["recipient"]), None, time)
    elif text := _text(content, metadata, role, tally):
        speaker = first_text(message, "author.name") if role == "user" else ""  # in a group chat
        return ChatMessage("user" if role == "user" else "assistant", text, speaker or None, time)
    return None


def _text(content: dict[str, Any], metadata: dict[str, Any], role: str, tally: Tally) -> str:
    files, parts = objects_of(metadata.get("attachments")), content.get("parts")
    lines = [_part(part, files) for part in parts] if isinstance(parts, list) else []
    lines += [text_of(content.get("text"))] if content.get("content_type") == "code" else []
    lines += [attachment(f.get("name") or f.get("id"), f.get("mime_type") or f.get("mimeType")) for f in files]
    text = "\n".join(line for line in lines if line)
    if role == "assistant" or "\ue200" in text:
        text = without_marks(text, tally)
    return text.strip()


def _part(part: object, files: list[dict[str, Any]]) -> str:
    if isinstance(part, str):
        return part.strip()
    holder = object_of(part)
    kind = text_of(holder.get("content_type"))
    if kind == "image_asset_pointer":
        ids = [key for file in files if (key := text_of(file.get("id")))]
        is_attachment = any(key in text_of(holder.get("asset_pointer")) for key in ids)  # and is named there
        return "" if is_attachment else _pointer(holder)
    if kind == "real_time_user_audio_video_asset_pointer":
        return placeholder("audio")
    if kind.endswith("asset_pointer"):
        sort = kind.split("_")[0]
        return placeholder(sort if sort in ("audio", "video", "canvas") else "file")
    return text_of(holder.get("text")) or (placeholder(kind) if kind else "")


def _pointer(part: dict[str, Any]) -> str:
    return placeholder("image", text_of(part.get("asset_pointer")).rsplit("/", 1)[-1])
