"""Claude Code's session logs: one .jsonl for each session below ~/.claude/projects.

Lines of type user and assistant hold ``message.content``; ``parentUuid`` makes a tree, since a question that is taken
back leaves its branch in the file. Sidechains (sub-agents), notes of the program, summaries by compaction and results
of tools are left out and counted; calls of tools are named in the assistant's turn. The format is undocumented.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar

from memlab.chats.conversation import (
    ChatMessage,
    Conversation,
    Tally,
    first_words,
    flatten,
    heads,
    iso,
    lines_of,
    merge_assistant,
    object_of,
    path_to,
    text_of,
)
from memlab.chats.source import ExportFile

_CLOSED = "</system-reminder>"
_REMINDER = re.compile(rf"<system-reminder>.*?(?:{_CLOSED}|\Z)", re.DOTALL)  # to the end: one that is open is read once
_COMMAND = re.compile(r"<(command-|local-command-|bash-|user-memory-input|task-notification)")
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")


class ClaudeCode:
    """One session for each log; all that the assistant said between two questions is one turn."""

    name: ClassVar = "claude_code"
    title: ClassVar = "Claude Code session log"

    def matches(self, file: ExportFile) -> bool:
        """Return whether a line of the file belongs to a session of Claude Code."""
        return file.ending == ".jsonl" and any(
            isinstance(line.get("type"), str) and line.keys() & {"sessionId", "parentUuid", "leafUuid"}
            for line in lines_of(file))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; lines that a resumed session repeats from an earlier log count once."""
        logs = sorted((f for f in files if self.matches(f)), key=lambda f: (_first_moment(f), f.name))
        seen: set[str] = set()
        read = []
        for file in logs:
            lines = []
            for line in lines_of(file):
                key = text_of(line.get("uuid"))
                if key and key in seen:
                    tally.add("lines repeated from an earlier log left out")
                    continue
                seen.add(key)
                lines.append(line)
            tally.add("logs that end in the middle of a line", file.cut)
            messages = merge_assistant(m for line in _branch(lines, tally) if (m := _message(line, tally)))
            summary = next((text_of(line.get("summary")) for line in lines if line.get("type") == "summary"), "")
            read.append(Conversation(summary or first_words(messages), messages))
        return read


def _first_moment(file: ExportFile) -> str:
    return min((t for line in lines_of(file) if (t := text_of(line.get("timestamp")))), default="")


def _branch(lines: list[dict[str, Any]], tally: Tally) -> list[dict[str, Any]]:
    """Return the lines without those of branches that begin with a question and do not lead to the last line.

    Calls of tools side by side are branches too, and stay; so does what is not connected to the last line.
    """
    by_id = {key: line for line in lines if (key := text_of(line.get("uuid")))}
    parents = {key: next((p for name in ("parentUuid", "logicalParentUuid") if isinstance(p := line.get(name), str)),
                         None) for key, line in by_id.items()}
    last = next((key for key in reversed(by_id) if _is_spoken(by_id[key])), None)
    dropped = {key for key, head in heads(path_to(last, parents), parents).items()
               if head is not None and _is_question(by_id[head])}
    tally.add("messages of other branches left out (questions taken back)",
              sum(_is_spoken(by_id[key]) for key in dropped))
    return [line for line in lines if text_of(line.get("uuid")) not in dropped]


def _is_spoken(line: dict[str, Any]) -> bool:
    return line.get("type") in ("user", "assistant") and line.get("isSidechain") is not True


def _is_question(line: dict[str, Any]) -> bool:
    return line.get("type") == "user" and _message(line, Tally()) is not None


def _message(line: dict[str, Any], tally: Tally) -> ChatMessage | None:
    role = line.get("type")
    if role not in ("user", "assistant"):
        return None
    for flag, what in (("isSidechain", "messages of sub-agents left out"),
                       ("isMeta", "notes of the program left out"),
                       ("isCompactSummary", "summaries of earlier messages left out"),
                       ("isApiErrorMessage", "errors of the model's server left out")):
        if line.get(flag) is True:
            tally.add(what)
            return None
    said_on = iso(line.get("timestamp"))
    text = flatten(object_of(line.get("message")).get("content"), tally)
    if role == "assistant":
        return ChatMessage("assistant", text, None, said_on) if text else None
    text = _REMINDER.sub(lambda match: "" if match[0].endswith(_CLOSED) else match[0], text).strip()
    if _COMMAND.match(text) or _INTERRUPTED.fullmatch(text):
        tally.add("notes of the program left out")
        return None
    return ChatMessage("user", text, None, said_on) if text else None

