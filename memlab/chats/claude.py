"""Claude's export: conversations.json, a list of conversations with ``chat_messages``.

A message has ``sender`` (human, assistant), ``text``, ``content`` parts, ``attachments`` and ``files``. Where messages
name their parents, the branch of the last message is taken; edited messages' other branches are left out and counted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from memlab.chats.conversation import (
    ChatMessage,
    Conversation,
    Tally,
    attachment,
    entries_of,
    first_words,
    flatten,
    iso,
    merge_assistant,
    objects_of,
    path_to,
    text_of,
)
from memlab.chats.source import ExportFile
from memlab.errors import MemlabError

_SENDERS = {"human": "user", "user": "user", "assistant": "assistant"}
_UNSUPPORTED = re.compile(r"(```\s*)?This block is not supported on your current device yet\.(\s*```)?")


class Claude:
    """One session for each conversation; a pasted or attached file is named, its text is left out."""

    name: ClassVar = "claude"
    title: ClassVar = "Claude export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a conversation with chat_messages in the file."""
        return file.ending != ".jsonl" and any("chat_messages" in entry for entry in entries_of(file))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; raise MemlabError naming file and field where messages are no list."""
        read = []
        for file in filter(self.matches, files):
            for index, entry in enumerate(entries_of(file)):
                if not isinstance(entry.get("chat_messages"), list):
                    raise MemlabError("expected a list", fix="give the export as Claude sent it",
                                      where=f"{file.name}, conversation {index}, field chat_messages")
                read.append(_conversation(entry, tally))
        return read


def _conversation(entry: dict[str, Any], tally: Tally) -> Conversation:
    messages = objects_of(entry["chat_messages"])
    kept = [m for raw in _branch(entry, messages, tally) if (m := _message(raw, tally))]
    return Conversation(text_of(entry.get("name")) or first_words(kept), merge_assistant(kept),
                        iso(entry.get("created_at")))


def _branch(entry: dict[str, Any], messages: list[dict[str, Any]], tally: Tally) -> list[dict[str, Any]]:
    """Return the messages of the branch of the current leaf; all where they do not name their parents."""
    by_id = {m["uuid"]: m for m in messages if isinstance(m.get("uuid"), str)}
    parents = {key: p if isinstance(p := m.get("parent_message_uuid"), str) else None for key, m in by_id.items()}
    if len(by_id) < len(messages) or not any(parent in by_id for parent in parents.values()):
        return messages
    leaf = entry.get("current_leaf_message_uuid")
    path = path_to(leaf if isinstance(leaf, str) and leaf in by_id else messages[-1]["uuid"], parents)
    tally.add("messages of other branches left out (edited questions, repeated answers)", len(messages) - len(path))
    return [by_id[key] for key in path]


def _message(raw: dict[str, Any], tally: Tally) -> ChatMessage | None:
    role = _SENDERS.get(text_of(raw.get("sender")))
    if role is None:
        tally.add("messages of neither human nor assistant left out")
        return None
    parts = raw.get("content")
    is_whole = isinstance(parts, str) or any(text_of(part.get("text")) for part in objects_of(parts))
    spoken = "\n".join(filter(None, ["" if is_whole else text_of(raw.get("text")), flatten(parts, tally)]))
    text = _UNSUPPORTED.sub("", spoken).strip()
    files = [*objects_of(raw.get("attachments")), *objects_of(raw.get("files"))]
    tally.add("texts of attached files left out", sum(bool(text_of(f.get("extracted_content"))) for f in files))
    names = dict.fromkeys(attachment(f.get("file_name"), f.get("file_type") or f.get("file_kind")) for f in files)
    text = "\n".join([text, *names]).strip()
    return ChatMessage("user" if role == "user" else "assistant", text, None, iso(raw.get("created_at"))) \
        if text else None
