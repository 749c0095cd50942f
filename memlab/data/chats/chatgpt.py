"""ChatGPT's export: conversations.json, a list of conversations whose messages form a tree.

A conversation holds ``mapping`` (node id -> parent, children, message) and ``current_node``, the end of the branch that
ChatGPT shows. Edited questions and repeated answers are further branches: they are left out and counted. The structure
is not documented by OpenAI; it is read as public exports of 2023 to 2026 show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from memlab.data.chats.branches import OTHERS, mend_parents, path_to
from memlab.data.chats.chatgpt_marks import without_marks
from memlab.data.chats.content import attachment, placeholder
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally, merge_assistant
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import said_on
from memlab.data.chats.values import entries_of, object_of, objects_of, text_of
from memlab.support.errors import MemlabError

_SPOKEN = {"text", "multimodal_text", "code"}
_THOUGHTS = {"thoughts", "reasoning_recap"}
_CONTEXT = {"user_editable_context", "model_editable_context"}


class ChatGPT:
    """One session for each conversation, along the branch that ends in ``current_node``."""

    name: ClassVar = "chatgpt"
    title: ClassVar = "ChatGPT export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a conversation with a mapping in the file, whose messages have authors."""
        return file.ending != ".jsonl" and any("mapping" in entry and (
            "current_node" in entry or any("author" in object_of(object_of(node).get("message"))
                                           for node in object_of(entry["mapping"]).values()))
            for entry in entries_of(file))

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
    times = {key: str(said_on(object_of(node.get("message"))) or "")
             for key, node in entry["mapping"].items() if isinstance(node, dict)}
    nodes = {key: entry["mapping"][key] for key in sorted(times, key=lambda key: times[key])}
    parents = mend_parents({key: text_of(node.get("parent")) or None for key, node in nodes.items()})
    leaf = entry.get("current_node")
    if not isinstance(leaf, str) or leaf not in nodes:
        leaf = max(nodes.keys() - set(parents.values()) or nodes, key=lambda key: (times[key], key), default=None)
        tally.add("conversations without a current message: the branch of the latest was taken", leaf is not None)
    path = path_to(leaf, parents)
    kept = [m for key in path if (m := _message(nodes[key].get("message"), tally))]
    tally.add(OTHERS, sum(_message(nodes[key].get("message"), Tally()) is not None for key in nodes.keys() - {*path}))
    return Conversation(text_of(entry.get("title")), merge_assistant(kept), said_on(entry),
                        key=text_of(entry.get("conversation_id") or entry.get("id")))


def _message(value: object, tally: Tally) -> ChatMessage | None:
    """Return what was said; None for what ChatGPT does not show, and for tools."""
    message = object_of(value)
    author, content = object_of(message.get("author")), object_of(message.get("content"))
    role, metadata = text_of(author.get("role")), object_of(message.get("metadata"))
    kind, time = text_of(content.get("content_type")) or "text", said_on(message)
    if role == "system" or kind in _CONTEXT:
        tally.add("instructions left out", _holds_text(content))
    elif metadata.get("is_visually_hidden_from_conversation") is True:
        tally.add("messages that ChatGPT does not show left out", _holds_text(content))
    elif role == "tool":
        pictures = [p for p in objects_of(content.get("parts")) if p.get("content_type") == "image_asset_pointer"]
        tally.add("results of tools left out", not pictures)
        return ChatMessage("assistant", "\n".join(map(_pointer, pictures)), None, time) if pictures else None
    elif kind in _THOUGHTS:
        tally.add("thoughts of the assistant left out")
    elif role not in ("user", "assistant") or kind not in _SPOKEN:
        tally.add("messages of other kinds left out", _holds_text(content), kind=kind)
    elif role == "assistant" and text_of(message.get("recipient")) not in ("", "all"):
        return ChatMessage("assistant", placeholder("tool", message["recipient"]), None, time)
    elif text := _text(content, metadata, role, tally):
        speaker = text_of(author.get("name")) if role == "user" else ""  # in a group chat
        return ChatMessage("user" if role == "user" else "assistant", text, speaker or None, time)
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
