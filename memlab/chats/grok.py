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
from datetime import date, datetime
from typing import Any, ClassVar

from memlab.chats.conversation import (
    ChatMessage,
    Conversation,
    Tally,
    entries_of,
    epoch,
    first_words,
    iso,
    merge_assistant,
    object_of,
    objects_of,
    path_to,
    placeholder,
    text_of,
)
from memlab.chats.source import ExportFile
from memlab.errors import MemlabError
from memlab.runtime.foreign import whole_number

_CARD = re.compile(r" ?<grok:render\b[^<>]*+>(?:[^<]++|<(?!/?grok:render\b))*+</grok:render>")
_BESIDE_CHATS = {"projects": "projects left out (instructions)", "tasks": "tasks left out",
                 "media_posts": "pictures and videos made outside of chats left out"}


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
                for key, what in _BESIDE_CHATS.items():
                    tally.add(what, len(objects_of(entry.get(key))))
                for index, pair in enumerate(objects_of(entry.get("conversations"))):
                    if not isinstance(pair.get("responses"), list):
                        raise MemlabError("expected a list", fix="give the export as xAI sent it",
                                          where=f"{file.name}, conversation {index}, field responses")
                    read.append(_conversation(object_of(pair.get("conversation")), pair["responses"], tally))
        return read


def _conversation(about: dict[str, Any], holders: list[Any], tally: Tally) -> Conversation:
    responses = [response for holder in objects_of(holders) if (response := object_of(holder.get("response")))]
    moments = [_moment(response.get("create_time")) for response in responses]
    if all(moments):
        responses.sort(key=lambda response: str(_moment(response.get("create_time"))))
    branch = _branch(responses, text_of(about.get("leaf_response_id")))
    tally.add("messages of other branches left out (edited questions, repeated answers)", len(responses) - len(branch))
    kept = [message for response in branch if (message := _message(response, tally))]
    return Conversation(text_of(about.get("title")) or first_words(kept), merge_assistant(kept),
                        iso(about.get("create_time")), key=text_of(about.get("id")))


def _branch(responses: list[dict[str, Any]], leaf: str) -> list[dict[str, Any]]:
    """Return the responses up to ``leaf``, else to the latest; all where they do not name their parents.

    responses: in the order of time. One whose parent is not in the export follows the one before it.
    """
    by_id = {key: response for response in responses if (key := text_of(response.get("_id")))}
    named = {key: text_of(response.get("parent_response_id")) for key, response in by_id.items()}
    if len(by_id) < len(responses) or not any(parent in by_id for parent in named.values()):
        return responses
    before = dict(zip(by_id, [None, *by_id]))
    parents = {key: parent if parent in by_id else before[key] if parent else None for key, parent in named.items()}
    return [by_id[key] for key in path_to(leaf if leaf in by_id else next(reversed(by_id)), parents)]


def _message(response: dict[str, Any], tally: Tally) -> ChatMessage | None:
    role = "user" if text_of(response.get("sender")).lower() == "human" else "assistant"
    text = text_of(response.get("message"))
    if role == "assistant":
        text = _CARD.sub("", text).strip()
        traces = objects_of(response.get("agent_thinking_traces"))
        tally.add("thoughts of the assistant left out", bool(text_of(response.get("thinking_trace"))) + len(traces))
        tally.add("results of tools left out",
                  len(objects_of(response.get("steps"))) + len(objects_of(response.get("web_search_results"))))
    lines = [text, *_named("image", response.get("generated_image_urls")),
             *_named("file", response.get("file_attachments"))]
    spoken = "\n".join(filter(None, lines))
    failed = not spoken and bool(response.get("error"))
    tally.add("answers that failed left out", failed)
    tally.add("messages without text left out", not spoken and not failed)
    return ChatMessage("user" if role == "user" else "assistant", spoken, None,
                       _moment(response.get("create_time"))) if spoken else None


def _named(kind: str, names: object) -> list[str]:
    """Name pictures by the last step of their address, and files by their id: their names are not in the export."""
    return [placeholder(kind, text_of(name).rsplit("/", 1)[-1].partition("?")[0])
            for name in (names if isinstance(names, list) else []) if text_of(name)]


def _moment(value: object) -> date | datetime | None:
    """Return the moment of MongoDB's extended JSON, or of an ISO text.

    >>> _moment({"$date": {"$numberLong": "1709286000123"}}).isoformat()
    '2024-03-01T09:40:00+00:00'
    """
    stated = value.get("$date") if isinstance(value, dict) else value
    if isinstance(stated, dict):
        stated = stated.get("$numberLong")
    ms = whole_number(str(stated)) if isinstance(stated, int | str) else None
    return iso(stated) if ms is None else epoch(ms / 1000)
