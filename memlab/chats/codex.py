"""Codex's session logs: rollout-*.jsonl below ~/.codex/sessions.

A line has ``timestamp``, ``type`` and ``payload``; what was said are payloads of type message under ``response_item``.
Older logs hold these items without the envelope. Context that the program adds (environment, instructions), reasoning
and outputs of tools are left out and counted; calls of tools are named in the assistant's turn.
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
    first_words,
    flatten,
    iso,
    lines_of,
    merge_assistant,
    object_of,
    placeholder,
    text_of,
)
from memlab.chats.source import ExportFile

_ENVELOPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted"}
_CONTEXT = re.compile(r"\s*(<(\w+)( [^>]*)?>.*</\2>\s*|# AGENTS\.md instructions.*)", re.DOTALL)
_CALLS = {"function_call", "custom_tool_call", "local_shell_call", "web_search_call"}


class Codex:
    """One session for each log; all that the assistant said between two questions is one turn."""

    name: ClassVar = "codex"
    title: ClassVar = "Codex session log"

    def matches(self, file: ExportFile) -> bool:
        """Return whether the file has Codex's envelopes, or begins with the header of an older log."""
        lines = lines_of(file)
        return (any(text_of(line.get("type")) in _ENVELOPES and isinstance(line.get("payload"), dict) for line in lines)
                or bool(lines) and {"id", "timestamp", "instructions"} <= lines[0].keys())

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations in the order of the logs' names."""
        read = []
        for file in filter(self.matches, files):
            tally.add("logs that end in the middle of a line", file.cut)
            lines = lines_of(file)
            header = object_of(lines[0].get("payload")) or lines[0]
            messages = merge_assistant(_messages(lines, tally))
            read.append(Conversation(first_words(messages), messages, iso(header.get("timestamp"))))
        return read


def _messages(lines: list[dict[str, Any]], tally: Tally) -> list[ChatMessage]:
    messages: list[ChatMessage] = []
    for line in lines:
        kind = text_of(line.get("type"))
        payload = object_of(line.get("payload"))
        if kind == "event_msg" and payload.get("type") == "thread_rolled_back":
            _roll_back(messages, payload.get("num_turns"), tally)
        tally.add("summaries of earlier messages left out", kind == "compacted")
        item = payload if kind == "response_item" else {} if kind in _ENVELOPES else line
        if message := _item(item, iso(line.get("timestamp")), tally):
            messages.append(message)
    return messages


def _item(item: dict[str, Any], said_on: date | datetime | None, tally: Tally) -> ChatMessage | None:
    kind, role = text_of(item.get("type")), text_of(item.get("role"))
    if kind == "message" and role in ("user", "assistant"):
        text = flatten(item.get("content"), tally)
        if role == "user" and _CONTEXT.fullmatch(text):
            tally.add("context added by the program left out")
            return None
        return ChatMessage("user" if role == "user" else "assistant", text, None, said_on) if text else None
    if kind in _CALLS:
        return ChatMessage("assistant", placeholder("tool", item.get("name") or kind.removesuffix("_call")), None,
                           said_on)
    tally.add("instructions left out", kind == "message")
    tally.add("thoughts of the assistant left out", kind == "reasoning")
    tally.add("results of tools left out", kind.endswith("_output"))
    return None


def _roll_back(messages: list[ChatMessage], turns: object, tally: Tally) -> None:
    """Remove the last ``turns`` questions of the user and all that followed them."""
    questions = [index for index, message in enumerate(messages) if message.role == "user"]
    if isinstance(turns, int) and turns > 0 and questions:
        first = questions[-min(turns, len(questions))]
        tally.add("messages of other branches left out (questions taken back)", len(messages) - first)
        del messages[first:]
