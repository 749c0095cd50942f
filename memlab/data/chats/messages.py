"""Messages as OpenAI's API takes them: ``{"role": "user", "content": ...}``, in JSON or JSONL.

A file is a list of messages, an object with ``messages``, a list of such objects or lists, or one of these on each
line of a .jsonl.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from memlab.data.chats.content import flatten, placeholder, tool_calls
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import said_on
from memlab.data.chats.values import object_of, objects_of, text_of
from memlab.support.errors import MemlabError

_LEFT_OUT = {"system", "developer", "tool", "function"}
_SAID = {"content", "tool_calls", "function_call", "refusal", "audio"}
_THOUGHTS = ("reasoning_content", "reasoning")
_OTHER_LOGS = {"sessionId", "parentUuid", "payload"}


class Messages:
    """One session for each list of messages."""

    name: ClassVar = "messages"
    title: ClassVar = 'messages with "role" and "content"'

    def matches(self, file: ExportFile) -> bool:
        """Return whether the file's first entry is a message, or holds a list of messages."""
        first = _first(file)
        return _is_conversation(first) or _is_message(first)

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations; raise MemlabError naming file and entry where one is no message."""
        read = []
        for file in filter(self.matches, files):
            if _is_message(_first(file)):
                read.append(_conversation({"messages": [value for _, value in _entries(file)], "title": file.stem},
                                          file.name, tally))
                continue
            for place, value in _entries(file):
                if not _is_conversation(value):
                    raise MemlabError('expected a list of messages, or an object with "messages"',
                                      where=f"{file.name}, {place}", fix="correct or remove it")
                holder = value if isinstance(value, dict) else {"messages": value}
                read.append(_conversation(holder, f"{file.name}, {place}", tally))
        return read


def read_message(value: Mapping[str, Any], tally: Tally, where: str) -> ChatMessage | None:
    """Return one message; None for instructions, tools' results and blank ones; raise MemlabError if it is none."""
    role = value.get("role")
    if not isinstance(role, str) or not _SAID & value.keys():
        raise MemlabError('expected an object with "role" and "content"', where=where,
                          fix='write {"role": "user", "content": "..."}')
    if role in _LEFT_OUT:
        tally.add("instructions left out" if role in ("system", "developer") else "results of tools left out")
        return None
    if role not in ("user", "assistant"):
        raise MemlabError(f"there is no role '{role:.40}'", where=where, fix="write user or assistant")
    content = value.get("content")
    if content is not None and not isinstance(content, str | list):
        raise MemlabError("expected text or a list of parts", where=f"{where}, field content")
    tally.add("thoughts of the assistant left out", any(text_of(value.get(key)) for key in _THOUGHTS))
    parts = [flatten(content, tally), text_of(value.get("refusal")), *_spoken_texts(value.get("audio")),
             *tool_calls(value.get("tool_calls")), *tool_calls([value.get("function_call")])]
    text = "\n".join(part for part in parts if part)
    speaker = text_of(value.get("name")) or None
    return ChatMessage("user" if role == "user" else "assistant", text, speaker, said_on(value)) if text else None


def _spoken_texts(audio: object) -> list[str]:
    """Return the placeholder of an answer that is spoken, and its words; nothing for any other answer."""
    return [placeholder("audio"), text_of(object_of(audio).get("transcript"))] if object_of(audio) else []


def _entries(file: ExportFile) -> Iterator[tuple[str, Any]]:
    """Yield (place, value) of the outermost entries."""
    if file.ending == ".jsonl":
        for number, value in file.content or []:
            yield f"line {number}", value
    elif isinstance(file.content, list):
        for index, value in enumerate(file.content):
            yield f"entry {index}", value
    elif isinstance(file.content, dict):
        yield "the object", file.content


def _first(file: ExportFile) -> Any:
    return next((value for _, value in _entries(file)), None)


def _is_message(value: object) -> bool:
    return (isinstance(value, dict) and isinstance(value.get("role"), str)
            and bool(_SAID & value.keys()) and not _OTHER_LOGS & value.keys())


def _is_conversation(value: object) -> bool:
    messages = value.get("messages") if isinstance(value, dict) else value
    return isinstance(messages, list) and bool(messages) and _is_message(messages[0])


def _conversation(holder: dict[str, Any], where: str, tally: Tally) -> Conversation:
    messages = holder["messages"]
    if len(objects_of(messages)) < len(messages):
        raise MemlabError("there is an entry that is no message", where=where, fix="correct or remove it")
    kept = [m for index, value in enumerate(messages)
            if (m := read_message(value, tally, f"{where}, message {index}"))]
    title = next((name for key in ("title", "name", "id") if (name := text_of(holder.get(key)))), "")
    return Conversation(title, kept, said_on(holder))
