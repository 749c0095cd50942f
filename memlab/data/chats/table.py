"""Exports that a table describes: one reader for all products of ``formats.yaml``, and for the formats of users."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from itertools import accumulate, islice
from pathlib import PurePosixPath
from typing import Any

from memlab.data.chats import agent_logs, chatgpt, gemini, slack, whatsapp
from memlab.data.chats.content import (
    attachment,
    first_at,
    flatten,
    last_step,
    name_of,
    objects_of,
    placeholder,
    read_openai,
    text_of,
    walk,
)
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally, merge_assistant, shown_branch
from memlab.data.chats.markup import to_text
from memlab.data.chats.schema import EntryTurn, Format, Paths
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import Time, UnreadTime, read_time, said_on
from memlab.data.chats.whatsapp_dates import DateOrder
from memlab.support.clock import has_offset
from memlab.support.errors import MemlabError

READERS = {"slack": (slack.matches, slack.read),
           "whatsapp": (whatsapp.matches, whatsapp.read)}
PROOFS = {"gemini": lambda node: any(map(gemini.is_activity, objects_of(node)))}
ENTRIES = {"gemini": gemini.prompts, "claude_code": agent_logs.sent_lines, "codex": agent_logs.said_lines}
MESSAGES = {"chatgpt": chatgpt.read_message, "claude_code": agent_logs.read_claude_code, "openai": read_openai}
"""What no table can describe: files, what makes a conversation, its entries, messages."""

_SOME = 100
"""Conversations that are looked at to recognise a file."""

_NAMES = ("fileName", "file_name", "filename", "original_name", "export_name", "name", "title", "uri", "url", "path",
          "emoji")
_KINDS = ("mime_type", "mimeType", "contentType", "mimetype", "file_type", "file_kind", "type")


@dataclass
class _Chat:
    """A conversation as the file has it, the names around it, and its messages."""

    node: Any
    around: dict[str, Any]
    where: str
    entries: list[dict[str, Any]]

    def at(self, paths: Paths, grouped: bool) -> Any:
        """Return the first value of the names around a conversation, in it, or in its messages if they are grouped."""
        node = self.node[::-1] if isinstance(self.node, list) else self.node  # a log states its last title
        places = ((self.around, path) if path.startswith("$") else place for path in paths
                  for place in ((node, path), (self.entries * grouped, f"*.{path}")))
        return next((found for holder, path in places if (found := first_at(holder, (path,))) is not None), None)


@dataclass(frozen=True, eq=False)
class TableFormat:
    """One product of a table."""

    name: str
    table: Format
    roles: Mapping[str, str]

    def matches(self, file: ExportFile) -> bool:
        """Return whether there is a conversation of this product in the file."""
        return READERS[self.table.code][0](file) if self.table.code in READERS else bool(self._nodes(file))

    def read(self, files: Sequence[ExportFile], tally: Tally, dates: DateOrder | None) -> list[Conversation]:
        """Return the conversations; raise MemlabError naming file and field where messages are no list."""
        if self.table.code in READERS:
            return READERS[self.table.code][1](files, tally, dates)
        chats: dict[object, _Chat] = {}
        seen: set[str] = set()
        for file in sorted(files, key=_first_moment) if self.table.once else files:
            nodes = self._nodes(file)
            for number, node in enumerate(nodes):
                omitted = next((words for path, words in self.table.omit.items() if [*walk(node, path)]), "")
                if omitted := omitted or "" if self._fits(node) else "entries that are no conversation left out":
                    tally.add(omitted)
                    continue
                around = {"$file": file.stem if isinstance(node, list) else "", "$folder": file.folder,
                          "$beside": _beside(file, self.table, files)}
                where = file.name if node is file.content else f"{file.name}, conversation {number}"
                groups = defaultdict[object, list[dict[str, Any]]](list)
                entries = self._entries(node, where, tally)
                for entry in entries:
                    if (key := text_of(entry.get(self.table.once))) in seen:
                        tally.add("lines repeated from an earlier log left out")
                        continue
                    seen |= {key} - {""}
                    group = first_at(entry, self.table.group) or first_at(node, self.table.group)
                    groups[str(group) if group else (file.name, number)].append(entry)
                for group, found in (groups if entries else {(file.name, number): []}).items():
                    chats.setdefault(group, _Chat(node, around, where, [])).entries.extend(found)
            tally.add("logs that end in the middle of a line", file.cut and bool(nodes))
        tally.remarks += [self.table.note] if self.table.note and chats else []
        return [self._conversation(chat, tally) for chat in chats.values()]

    def _nodes(self, file: ExportFile) -> list[Any]:
        """Return the conversations of a file, if one of the first of them has all that this product has."""
        content = file.content
        if content is None or not fnmatch(PurePosixPath(file.name).name.lower(), self.table.files):
            return []
        if self.table.splits:
            content = split_text(content, self.table.splits) if isinstance(content, str) else []
        found = ([*walk(content, path)] for path in self.table.conversations)
        return next((nodes for nodes in found if any(map(self._fits, nodes[:_SOME]))), [])

    def _fits(self, node: Any) -> bool:
        return PROOFS.get(self.table.code, bool)(node) and all(
            any(True for path in paths for _ in islice(walk(node, path), 1)) for paths in self.table.needs)

    def _entries(self, node: Any, where: str, tally: Tally) -> list[dict[str, Any]]:
        """Return the messages of a conversation, with those that are inside others behind them."""
        for path in self.table.messages:
            holder, _, last = path.rpartition(".")
            for value in walk(node, holder):
                if last in ("*", "[]") and holder and not isinstance(value, list | dict):
                    raise MemlabError("expected a list", where=f"{where}, field {holder}",
                                      fix="give the export as the vendor sent it")
            if found := list(walk(node, path)):
                break
        else:
            return []
        waiting, entries = found[::-1], []
        while waiting:
            entry = waiting.pop()
            if isinstance(entry, dict):
                entries.append(entry)
                inner = entry.get(self.table.children)
                waiting += inner[::-1] if isinstance(inner, list) else []
        tally.add("entries that are no message left out", sum(not isinstance(entry, dict) for entry in found))
        return ENTRIES[self.table.code](entries, tally) if self.table.code in ENTRIES else entries

    def _conversation(self, chat: _Chat, tally: Tally) -> Conversation:
        table, entries = self.table, chat.entries

        def text_at(paths: Paths) -> str:
            return self._plain(chat.at(paths, bool(table.group)))

        if table.sort or table.people or table.newest:
            entries = self._in_order(entries)
        if table.tree:
            entries = shown_branch(entries, lambda entry: name_of(first_at(entry, table.tree["key"])),
                                   lambda entry: name_of(first_at(entry, table.tree["parent"])),
                                   text_at(table.tree.get("leaf", ())), tally,
                                   lambda entry: bool(self._messages(entry, "", Tally())))
        kept = [m for number, entry in enumerate(entries)
                for m in self._messages(entry, f"{chat.where}, message {number}", tally)]
        if len({has_offset(m.said_on) for m in kept if isinstance(m.said_on, datetime)}) > 1:
            tally.add("times without a zone beside others with one, taken as UTC", sum(
                not has_offset(m.said_on) for m in kept if isinstance(m.said_on, datetime)))
            kept = [replace(m, said_on=_in_utc(m.said_on)) for m in kept]
        tally.add("messages whose author is not named", sum(m.speaker is None for m in kept) * bool(
            table.people and table.speaker))
        room, title = text_at(table.room), text_at(table.title)
        return Conversation(title or room, merge_assistant(kept) if table.join else kept,
                            self._time(chat.node, table.started), table.people, text_at(table.key), room)

    def _in_order(self, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return messages by their times; one without a time follows the one before it."""
        times = [str(self._time(entry, (*self.table.time, ".")) or "") for entry in entries]
        stated = [time for time in times if time]
        if self.table.newest or stated and stated[0] > stated[-1]:
            entries, times = entries[::-1], times[::-1]
        keys: Iterator[str] = accumulate(times, lambda before, time: time or before)
        return [entry for _, entry in sorted(zip(keys, entries), key=lambda pair: pair[0])]

    def _messages(self, entry: dict[str, Any], where: str, tally: Tally) -> list[ChatMessage]:
        """Return the turns of an entry; none for what is left out, which is counted."""
        table = self.table
        if table.pick:
            chosen = first_at(entry, (f"{table.pick[0]}.{name_of(entry.get(table.pick[1]))}",))
            entry = chosen if isinstance(chosen, dict) else entry
        for path, words in table.skip.items():
            for value in walk(entry, path):
                if omitted := words.get(str(value).lower(), words.get("*", "") if value else ""):
                    tally.add(omitted)
                    return []
        if table.code in MESSAGES:
            message = MESSAGES[table.code](entry, tally, where)
            return [message] if message else []
        for path, what in table.counts.items():
            tally.add(what, sum(bool(value) for value in walk(entry, path)))
        time, speaker = self._time(entry, (*table.time, ".")), self._plain(first_at(entry, table.speaker)) or None
        if table.turns:
            return [m for turn in table.turns for m in self._turn(entry, turn, None, time, tally)]
        said_by = str(next((v for path in table.role for v in walk(entry, path) if v is not None), ""))
        role = "assistant" if first_at(entry, table.bots) else "user" if not table.role else self.roles.get(
            said_by.lower(), self.roles.get("*"))
        if role != "user" and role != "assistant":
            is_said = bool(said_by or self._text(entry, table.text, Tally()))
            tally.add(role or "messages of other roles left out", is_said, kind="" if role else said_by)
            return []
        return self._turn(entry, EntryTurn(role=role, text=table.text), speaker, time, tally)

    def _turn(self, entry: dict[str, Any], turn: EntryTurn, speaker: str | None, time: Time,
              tally: Tally) -> list[ChatMessage]:
        parts, more = self._text(entry, self.table.parts, tally), self._text(entry, self.table.more, tally)
        is_whole = any(text_of(text) for path in self.table.parts for text in walk(entry, f"{path}.*.text"))
        text = "" if is_whole else self._text(entry, turn.text, tally)
        text = "\n".join(filter(None, [text, parts, "" if more in text else more]))
        names = [] if self.table.turns else [*self._attachments(entry)]
        names += [placeholder("tool", value) for path in self.table.calls for value in walk(entry, path)]
        text = "\n".join(filter(None, [text, *dict.fromkeys(names)]))
        tally.add(turn.missing or "messages without text left out", not text)
        return [ChatMessage(turn.role, text, speaker, time)] * bool(text)

    def _time(self, entry: dict[str, Any], paths: Paths) -> Time:
        unread: Time = None
        for path in paths:
            for value in walk(entry, path):
                time = said_on(value) if isinstance(value, dict) else read_time(value)
                if time and not isinstance(time, UnreadTime):
                    return _in_utc(time) if self.table.utc else time
                if not isinstance(value, dict | list) and value:
                    unread = unread or UnreadTime(path, f"{value!r:.40}")
                unread = unread or time
        return unread

    def _text(self, entry: dict[str, Any], paths: Paths, tally: Tally) -> str:
        for path in paths:
            found = (self._shown(value, tally) for value in walk(entry, path))
            text = "\n".join(filter(None, found)) if "[]" in path else next(filter(None, found), "")
            if text:
                for pattern, plain in self.table.replace.items():
                    text = re.sub(pattern, plain, text)
                return text.strip()
        return ""

    def _shown(self, value: Any, tally: Tally) -> str:
        text = self._plain(flatten(value, tally, self.table.glue))
        return to_text(text) if self.table.html and re.search("<[a-zA-Z/]|&[a-z#]", text) else text.strip()

    def _plain(self, value: Any) -> str:
        text = name_of(value)
        if self.table.latin1:
            try:
                return text.encode("latin-1").decode()
            except UnicodeError:
                return text
        return text

    def _attachments(self, entry: dict[str, Any]) -> Iterator[str]:
        for path, kind in self.table.attachments.items():
            for value in walk(entry, path):
                holder = value if isinstance(value, dict) else {}
                texts = value.split() if isinstance(value, str) and "://" in value else [value] * bool(value)
                for text in [first_at(holder, _NAMES)] if holder else texts:
                    name = self._plain(text)
                    name = "" if name.startswith("(") else last_step(name) if "/" in name else name
                    yield placeholder(kind, name) if kind else attachment(name, first_at(holder, _KINDS) or "")


def split_text(text: str, pattern: str) -> list[dict[str, Any]]:
    """Return the messages of a text: the groups of each match, and the text up to the next; a time holds until another.

    >>> split_text("[9:00] Ann:\\nHi\\n[9:01] Bob:\\nHo", r"^\\[(?P<time>[^]]+)\\] (?P<speaker>\\w+):$")[1]
    {'time': '9:01', 'speaker': 'Bob', 'text': 'Ho'}
    """
    marks = list(re.finditer(pattern, text.replace("\r\n", "\n"), re.MULTILINE))
    pieces: list[dict[str, Any]] = []
    for mark, following in zip(marks, [*marks[1:], None]):
        rest = mark.string[mark.end():following.start() if following else None].strip()
        fields = {key: value for key, value in mark.groupdict().items() if value is not None}
        carried = {"time": pieces[-1]["time"]} if pieces and "time" in pieces[-1] else {}
        pieces.append({**carried, **fields, "text": rest})
    return pieces


def _first_moment(file: ExportFile) -> tuple[str, str]:
    return min((str(time) for entry in objects_of(file.content) if (time := said_on(entry))), default=""), file.name


def _beside(file: ExportFile, table: Format, files: Sequence[ExportFile]) -> Any:
    """Return the content of the file of a name in the same folder."""
    wanted = str(PurePosixPath(file.name).with_name(table.beside)) if table.beside else ""
    return next((other.content for other in files if other.name == wanted), None)


def _in_utc(time: Time) -> Time:
    return time.replace(tzinfo=UTC) if isinstance(time, datetime) and not has_offset(time) else time
