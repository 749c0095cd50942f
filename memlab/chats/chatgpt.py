"""ChatGPT's export: conversations.json, a list of conversations whose messages form a tree.

A conversation holds ``mapping`` (node id -> parent, children, message) and ``current_node``, the end of the branch that
ChatGPT shows. Edited questions and repeated answers are further branches: they are left out and counted. The structure
is not documented by OpenAI; it is read as public exports of 2023 to 2026 show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from memlab.chats.chatgpt_marks import without_marks
from memlab.chats.conversation import (
    ChatMessage,
    Conversation,
    Tally,
    attachment,
    entries_of,
    epoch,
    first_words,
    merge_assistant,
    object_of,
    objects_of,
    path_to,
    placeholder,
    text_of,
)
from memlab.chats.source import ExportFile
from memlab.errors import MemlabError

_SPOKEN = {"text", "multimodal_text", "code"}
_THOUGHTS = {"thoughts", "reasoning_recap"}
_CONTEXT = {"user_editable_context", "model_editable_context"}


class ChatGPT:
    """One session for each conversation, along the branch that ends in ``current_node``."""

    name: ClassVar = "chatgpt"
    title: ClassVar = "ChatGPT export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a conversation with a mapping in the file."""
        return file.ending != ".jsonl" and any(
            "mapping" in entry and ("current_node" in entry or "title" in entry) for entry in entries_of(file))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; raise MemlabError naming file and field where one has no tree."""
        read = []
        for file in filter(self.matches, files):
            for index, entry in enumerate(entries_of(file)):
                if not isinstance(entry.get("mapping"), dict):
                    raise MemlabError("expected an object", where=f"{file.name}, conversation {index}, field mapping",
                                      fix="give the export as ChatGPT sent it")
                read.append(_conversation(entry, tally))
        return read


def _conversation(entry: dict[str, Any], tally: Tally) -> Conversation:
    nodes = {key: node for key, node in entry["mapping"].items() if isinstance(node, dict)}
    parents = {key: node["parent"] if isinstance(node.get("parent"), str) else None for key, node in nodes.items()}
    leaf = entry.get("current_node")
    if not isinstance(leaf, str) or leaf not in nodes:
        leaf = _latest_leaf(nodes, parents)
        tally.add("conversations without a current message: the branch of the latest was taken", leaf is not None)
    path = path_to(leaf, parents)
    kept = [m for key in path if (m := _message(nodes[key].get("message"), tally))]
    beside = nodes.keys() - set(path)
    tally.add("messages of other branches left out (edited questions, repeated answers)",
              sum(_message(nodes[key].get("message"), Tally()) is not None for key in beside))
    return Conversation(text_of(entry.get("title")) or first_words(kept), merge_assistant(kept),
                        epoch(entry.get("create_time")),
                        key=text_of(entry.get("conversation_id") or entry.get("id")))


def _latest_leaf(nodes: dict[str, dict[str, Any]], parents: dict[str, str | None]) -> str | None:
    leaves = nodes.keys() - set(parents.values())
    moments = {key: epoch(object_of(nodes[key].get("message")).get("create_time")) for key in leaves or nodes}
    return max(moments, key=lambda key: (str(moments[key] or ""), key), default=None)


def _message(value: object, tally: Tally) -> ChatMessage | None:
    """Return what was said; None for what ChatGPT does not show, and for tools."""
    message = object_of(value)
    author, content = object_of(message.get("author")), object_of(message.get("content"))
    role, metadata = text_of(author.get("role")), object_of(message.get("metadata"))
    kind, said_on = text_of(content.get("content_type")) or "text", epoch(message.get("create_time"))
    if role == "system" or kind in _CONTEXT:
        tally.add("instructions left out", _holds_text(content))
    elif metadata.get("is_visually_hidden_from_conversation") is True:
        tally.add("messages that ChatGPT does not show left out", _holds_text(content))
    elif role == "tool":
        pictures = [p for p in objects_of(content.get("parts")) if p.get("content_type") == "image_asset_pointer"]
        tally.add("results of tools left out", not pictures)
        return ChatMessage("assistant", "\n".join(map(_pointer, pictures)), None, said_on) if pictures else None
    elif kind in _THOUGHTS:
        tally.add("thoughts of the assistant left out")
    elif role not in ("user", "assistant") or kind not in _SPOKEN:
        tally.add("messages of other kinds left out", _holds_text(content), kind=kind)
    elif role == "assistant" and text_of(message.get("recipient")) not in ("", "all"):
        return ChatMessage("assistant", placeholder("tool", message["recipient"]), None, said_on)
    elif text := _text(content, metadata, role, tally):
        speaker = text_of(author.get("name")) if role == "user" else ""  # in a group chat
        return ChatMessage("user" if role == "user" else "assistant", text, speaker or None, said_on)
    return None


def _holds_text(content: dict[str, Any]) -> bool:
    parts = content.get("parts")
    texts = [*(parts if isinstance(parts, list) else []), *(v for k, v in content.items() if k != "content_type")]
    return any(map(text_of, texts))


def _text(content: dict[str, Any], metadata: dict[str, Any], role: str, tally: Tally) -> str:
    files, parts = objects_of(metadata.get("attachments")), content.get("parts")
    lines = [_part(part, files) for part in parts] if isinstance(parts, list) else []
    lines += [text_of(content.get("text"))] if content.get("content_type") == "code" else []
    lines += [attachment(f.get("name") or f.get("id"), f.get("mime_type") or f.get("mimeType")) for f in files]
    text = "\n".join(line for line in lines if line)
    if role == "assistant" or "\ue200" in text:
        text = without_marks(text, objects_of(metadata.get("content_references")), tally)
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
