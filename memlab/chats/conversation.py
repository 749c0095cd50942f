"""Conversations as all readers of exports return them: messages, their content, branches, and what was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, ClassVar, Literal, Protocol
from urllib.parse import urlsplit

from memlab.chats.source import ExportFile
from memlab.errors import MemlabError
from memlab.runtime.clock import read_moment
from memlab.text.display import shorten

Role = Literal["user", "assistant"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SECONDS = 1e11  # the year 5138; larger numbers are milliseconds


@dataclass(frozen=True)
class ChatMessage:
    """A message; ``said_on`` has a UTC offset, or none if the export states local times; None if it states no time."""

    role: Role
    text: str
    speaker: str | None = None
    said_on: date | datetime | None = None


@dataclass(frozen=True)
class Conversation:
    """Messages in order.

    title: the vendor's, or the first words. started_on: used where the first message has no time. endless: whether it
    is a channel or chat that goes on for years, which ``--split auto`` cuts by days. key: the vendor's id, "" for none.
    """

    title: str
    messages: Sequence[ChatMessage]
    started_on: date | datetime | None = None
    endless: bool = False
    key: str = ""


@dataclass
class Tally:
    """Counts of what was left out or changed, and remarks for the user."""

    remarks: list[str] = field(default_factory=list)
    _kinds: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, what: str, count: int = 1, kind: str = "") -> None:
        """Count something, in words that a number follows; ``kind`` is the export's name for it."""
        if count:
            self._kinds.setdefault(what, Counter())[kind] += count

    @property
    def counts(self) -> Counter[str]:
        """Each count by its words, with the names of the six most frequent kinds.

        >>> tally = Tally()
        >>> tally.add("lines left out", 2, kind="mode"), tally.add("lines left out", 3, kind="progress")
        (None, None)
        >>> dict(tally.counts)
        {'lines left out (progress, mode)': 5}
        """
        counts: Counter[str] = Counter()
        for what, kinds in self._kinds.items():
            named = sorted((kind for kind in kinds if kind), key=lambda kind: (-kinds[kind], kind))
            names = [" ".join(kind.split())[:40] for kind in named[:6]] + ["..."] * (len(named) > 6)
            counts[f"{what} ({', '.join(names)})" if names else what] += kinds.total()
        return counts


class ExportFormat(Protocol):
    """A reader of one vendor's export."""

    name: ClassVar[str]
    title: ClassVar[str]

    def matches(self, file: ExportFile) -> bool:
        """Return whether a file has this format, by its structure."""
        ...

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the conversations of an export; raise MemlabError naming file and field where it is damaged."""
        ...


def text_of(value: object) -> str:
    """Return a text without blanks at its ends; "" for anything else."""
    return value.strip() if isinstance(value, str) else ""


def object_of(value: object) -> dict[str, Any]:
    """Return a JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects_of(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list; empty for anything else."""
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def entries_of(file: ExportFile) -> list[dict[str, Any]]:
    """Return the objects of a file: those of its list, or the one that it holds."""
    return objects_of([file.content] if isinstance(file.content, dict) else file.content)


def lines_of(file: ExportFile) -> list[dict[str, Any]]:
    """Return the objects of the lines of a .jsonl; empty for other files."""
    return objects_of([value for _, value in file.content or []]) if file.ending == ".jsonl" else []


def epoch(value: object) -> date | datetime | None:
    """Return the moment of seconds or milliseconds since 1970, as number or text, in UTC; None for anything else.

    >>> epoch("1709286000.000100").isoformat(), epoch(None), epoch(1e300)
    ('2024-03-01T09:40:00+00:00', None, None)
    >>> epoch(1709286000123).isoformat()
    '2024-03-01T09:40:00+00:00'
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
        seconds /= 1000 if seconds > _MOST_SECONDS else 1
        return iso(_EPOCH + timedelta(seconds=int(seconds))) if math.isfinite(seconds) else None
    except (ValueError, OverflowError):
        return None


def iso(value: object) -> date | datetime | None:
    """Return the date or time of an ISO text, with its UTC offset or without; None for anything else.

    >>> iso("2024-03-01T09:40:00.123Z").isoformat(), iso("soon")
    ('2024-03-01T09:40:00+00:00', None)
    """
    with suppress(MemlabError):
        moment = read_moment(value)
        return moment.replace(microsecond=0) if isinstance(moment, datetime) else moment
    return None


def merge_assistant(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """Join what the assistant said in several messages (around its tool calls) to one turn, with the first's time."""
    merged: list[ChatMessage] = []
    for message in messages:
        if merged and message.role == "assistant" == merged[-1].role and message.speaker == merged[-1].speaker:
            merged[-1] = replace(merged[-1], text=f"{merged[-1].text}\n{message.text}")
        else:
            merged.append(message)
    return merged


def first_words(messages: Iterable[ChatMessage], width: int = 40) -> str:
    """Return the beginning of the first text as a title."""
    return shorten(" ".join(next((m.text for m in messages if m.text), "").split()), width)


def path_to(leaf: str | None, parents: Mapping[str, str | None]) -> list[str]:
    """Return the ids from the first message to ``leaf``; a circle ends the walk.

    >>> path_to("c", {"a": None, "b": "a", "b2": "a", "c": "b"})
    ['a', 'b', 'c']
    """
    path: list[str] = []
    seen: set[str] = set()
    while leaf is not None and leaf in parents and leaf not in seen:
        seen.add(leaf)
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


def heads(path: list[str], parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return, for each id beside the path, the first id of its branch; None if the branch does not touch the path.

    >>> heads(["a", "c"], {"a": None, "b2": "b", "b": "a", "b3": "b2", "c": "a", "x": None})
    {'b2': 'b', 'b': 'b', 'b3': 'b', 'x': None}
    """
    on_path = set(path)
    found: dict[str, str | None] = {}
    for start in parents:
        walked: list[str] = []
        at: str | None = start
        seen: set[str] = set()
        while at is not None and at in parents and at not in on_path and at not in found and at not in seen:
            seen.add(at)
            walked.append(at)
            at = parents[at]
        head = walked[-1] if walked and at in on_path else found.get(at or "") if at in found else None
        found.update(dict.fromkeys(walked, head))
    return found


_TEXT = {"text", "input_text", "output_text", "refusal", "summary_text", "voice_note"}
_THOUGHTS = {"thinking", "redacted_thinking", "reasoning", "token_budget"}
_CALLS = {"tool_use", "server_tool_use", "mcp_tool_use", "function_call", "custom_tool_call"}
_PICTURES = {"image", "image_url", "input_image"}
_FILES = {"file", "input_file", "document"}


def placeholder(kind: str, name: object = "") -> str:
    """Return the placeholder of content that is not text.

    >>> placeholder("image", "cat.png"), placeholder("file"), placeholder("tool", " a\\nb ")
    ('[image: cat.png]', '[file]', '[tool: a b]')
    """
    label = " ".join(text_of(name).split()).replace("]", ")")[:200]
    return f"[{kind}: {label}]" if label else f"[{kind}]"


def attachment(name: object, mime: object = "") -> str:
    """Name an attachment by its kind.

    >>> attachment("a.png", "image/png"), attachment("b.pdf", "application/pdf"), attachment("c.m4a", "audio/mp4")
    ('[image: a.png]', '[file: b.pdf]', '[audio: c.m4a]')
    """
    kind = text_of(mime).split("/")[0].lower()
    return placeholder(kind if kind in ("image", "audio", "video") else "file", name)


def flatten(content: object, tally: Tally) -> str:
    """Return the text of a content: a text, or a list of texts and parts with a ``type``.

    Thoughts and results of tools are left out, and counted.

    >>> flatten([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "http://x/cat.png"}},
    ...          {"type": "tool_use", "name": "Read"}, {"type": "thinking", "thinking": "..."}], Tally())
    'Look:\\n[image: cat.png]\\n[tool: Read]'
    """
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        return text_of(content)
    parts = (part.strip() if isinstance(part, str) else _part(part, tally) for part in content
             if isinstance(part, str | dict))
    return "\n".join(part for part in parts if part)


def tool_calls(value: object) -> list[str]:
    """Name the calls of OpenAI's field ``tool_calls``."""
    return [placeholder("tool", object_of(call.get("function")).get("name") or call.get("name"))
            for call in objects_of(value)]


def _part(part: dict[str, Any], tally: Tally) -> str:
    kind = text_of(part.get("type"))
    if kind in _TEXT or not kind:
        value = part.get("text") or part.get("refusal")
        return text_of(object_of(value).get("value") if isinstance(value, dict) else value)
    if kind in _THOUGHTS:
        tally.add("thoughts of the assistant left out", kind != "token_budget")
        return ""
    if kind in _CALLS:
        return placeholder("tool", part.get("name"))
    if kind.endswith(("_result", "_call_output")):
        tally.add("results of tools left out")
        return ""
    if kind in _PICTURES:
        return placeholder("image", _file_name(part))
    if kind in _FILES:
        return placeholder("file", _file_name(part))
    return text_of(part.get("text")) or placeholder("audio" if "audio" in kind else kind, part.get("name"))


def _file_name(part: dict[str, Any]) -> str:
    """Return the name of a picture or file, or the last step of its address; "" for data that stand in the message."""
    for holder in (part, *(object_of(part.get(key)) for key in ("image_url", "file", "source"))):
        for key in ("filename", "file_name", "title", "name"):
            if name := text_of(holder.get(key)):
                return name
    for value in (part.get("image_url"), object_of(part.get("image_url")).get("url"),
                  object_of(part.get("source")).get("url")):
        address = text_of(value)
        if address and not address.startswith("data:"):
            try:
                return PurePosixPath(urlsplit(address).path).name
            except ValueError:
                return ""
    return ""
