"""Grok's export: prod-grok-backend.json of the account data that accounts.x.ai sends.

``conversations`` holds ``{"conversation": {...}, "responses": [{"response": {...}}]}``. A response has ``sender``
(human; everything else is Grok: assistant, ASSISTANT or the name of a model), ``message``, ``create_time`` as MongoDB
writes it (``{"$date": {"$numberLong": "1749554989923"}}``, in ms) and ``parent_response_id``. The branch that ends in
``leaf_response_id`` is taken; mostly that is empty or names a response that is not in the export, then the branch of
the latest response. Other branches, thoughts, steps and results of searches are left out and counted, marks of
citations (``<grok:render>``) are removed, and pictures and files are named.

The structure is described by importer-mappings.md of portable-ai-memory/portable-ai-memory, section 5, from a real
export of February 2026; src/portable_ai_memory/converters/xai.py of portable-ai-memory/python-sdk reads it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from memlab.data.chats.branches import shown_branch
from memlab.data.chats.content import placeholder
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally, merge_assistant
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import said_on
from memlab.data.chats.values import entries_of, object_of, objects_of, text_of
from memlab.support.errors import MemlabError

_CARD = re.compile(r" ?<grok:render\b[^<>]*+>(?:[^<]++|<(?!/?grok:render\b))*+</grok:render>")


class Grok:
    """One session for each conversation, along the branch of the latest response."""

    name: ClassVar = "grok"
    title: ClassVar = "Grok export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a conversation with responses in the file."""
        return file.ending != ".jsonl" and any(
            "conversation" in pair and "responses" in pair
            for entry in entries_of(file) for pair in objects_of(entry.get("conversations")))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; raise MemlabError naming file and field where responses are no list."""
        read = []
        for file in filter(self.matches, files):
            for entry in entries_of(file):
                for index, pair in enumerate(objects_of(entry.get("conversations"))):
                    if not isinstance(pair.get("responses"), list):
                        raise MemlabError("expected a list", fix="give the export as xAI sent it",
                                          where=f"{file.name}, conversation {index}, field responses")
                    read.append(_conversation(object_of(pair.get("conversation")), pair["responses"], tally))
        return read


def _conversation(about: dict[str, Any], holders: list[Any], tally: Tally) -> Conversation:
    responses = [response for holder in objects_of(holders) if (response := object_of(holder.get("response")))]
    if all(map(said_on, responses)):
        responses.sort(key=lambda response: str(said_on(response)))
    branch = shown_branch(responses, "_id", "parent_response_id", about.get("leaf_response_id"), tally)
    kept = [message for response in branch if (message := _message(response, tally))]
    return Conversation(text_of(about.get("title")), merge_assistant(kept), said_on(about),
                        key=text_of(about.get("id")))


def _message(response: dict[str, Any], tally: Tally) -> ChatMessage | None:
    role = "user" if text_of(response.get("sender")).lower() == "human" else "assistant"
    text = text_of(response.get("message"))
    if role == "assistant":
        text = _CARD.sub("", text).strip()
        traces = objects_of(response.get("agent_thinking_traces"))
        tally.add("thoughts of the assistant left out", bool(text_of(response.get("thinking_trace"))) + len(traces))
        tally.add("results of tools left out",
                  len(objects_of(response.get("steps"))) + len(objects_of(response.get("web_search_results"))))
    lines = [text, *_names("image", response.get("generated_image_urls")),
             *_names("file", response.get("file_attachments"))]
    spoken = "\n".join(filter(None, lines))
    tally.add("messages without text left out", not spoken)
    return ChatMessage("user" if role == "user" else "assistant", spoken, None, said_on(response)) if spoken else None


def _names(kind: str, names: object) -> list[str]:
    """Name pictures by the last step of their address, and files by their id: their names are not in the export."""
    return [placeholder(kind, text_of(name).rsplit("/", 1)[-1].partition("?")[0])
            for name in (names if isinstance(names, list) else []) if text_of(name)]
