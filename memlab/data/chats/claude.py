"""Claude's export: conversations.json, a list of conversations with ``chat_messages``.

A message has ``sender`` (human, assistant), ``text``, ``content`` parts, ``attachments`` and ``files``. Where messages
name their parents, the branch of the last message is taken; edited messages' other branches are left out and counted.
Files of design_chats, whose messages have ``contentBlocks``, are left out and counted. Large exports are several zips
beside a manifest with ``data_files``, as importers of 2026 describe them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, ClassVar

from memlab.data.chats.branches import shown_branch
from memlab.data.chats.content import attachment, flatten
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally, merge_assistant
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import said_on
from memlab.data.chats.values import entries_of, object_of, objects_of, text_of
from memlab.support.errors import MemlabError

_SENDERS = {"human": "user", "user": "user", "assistant": "assistant"}
_UNSUPPORTED = re.compile(r"(```\s*)?This block is not supported on your current device yet\.(\s*```)?")


class Claude:
    """One session for each conversation; a pasted or attached file is named, its text is left out."""

    name: ClassVar = "claude"
    title: ClassVar = "Claude export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a conversation with chat_messages in the file, or a chat about a design."""
        return file.ending != ".jsonl" and any("chat_messages" in entry or _is_design(entry)
                                               for entry in entries_of(file))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; raise MemlabError naming file and field where messages are no list."""
        read = []
        for file in filter(self.matches, files):
            for index, entry in enumerate(entries_of(file)):
                if _is_design(entry):
                    tally.add("chats about designs left out")
                    continue
                if not isinstance(entry.get("chat_messages"), list):
                    raise MemlabError("expected a list", fix="give the export as Claude sent it",
                                      where=f"{file.name}, conversation {index}, field chat_messages")
                read.append(_conversation(entry, tally))
        return read


def _conversation(entry: dict[str, Any], tally: Tally) -> Conversation:
    branch = shown_branch(objects_of(entry["chat_messages"]), "uuid", "parent_message_uuid",
                          entry.get("current_leaf_message_uuid"), tally)
    kept = [m for raw in branch if (m := _message(raw, tally))]
    return Conversation(text_of(entry.get("name")), merge_assistant(kept), said_on(entry),
                        key=text_of(entry.get("uuid")))


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
    return ChatMessage("user" if role == "user" else "assistant", text, None, said_on(raw)) if text else None


def _is_design(entry: dict[str, Any]) -> bool:
    return "uuid" in entry and any({"content", "contentBlocks"} & object_of(message.get("content")).keys()
                                   for message in objects_of(entry.get("messages")))


def missing_archives(files: Sequence[ExportFile]) -> list[str]:
    """Return the names of the archives with chats that the manifest of an export lists, and that are not there."""
    listed = [text_of(entry.get("filename") or entry.get("name")) for file in files
              if file.stem.startswith("manifest") and isinstance(file.content, dict)
              for entry in objects_of(file.content.get("data_files") or file.content.get("files"))]
    there = {PurePosixPath(part).stem for file in files for part in PurePosixPath(file.name).parts}
    return [name for name in dict.fromkeys(listed)
            if name.startswith(("conversations", "design_chats")) and PurePosixPath(name).stem not in there]
