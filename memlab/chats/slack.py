"""Slack's export: a folder for each channel with a .json for each day, and users.json; as a folder or a zip.

A thread is a conversation of its own, since its replies come days later; the other messages of a channel are cut by
days. What Slack itself writes (joins, topics, pins) is left out and counted. The fields are those of Slack's page "How
to read Slack data exports" and of its message events.
"""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, NamedTuple

from memlab.chats.conversation import (
    ChatMessage,
    Conversation,
    Tally,
    attachment,
    epoch,
    first_words,
    object_of,
    objects_of,
    placeholder,
    text_of,
)
from memlab.chats.source import ExportFile

_MARK = re.compile(r"<([^<>|]+)(?:\|([^<>]*))?>")


class People:
    """People by their ids, from users.json and from the profiles that messages carry.

    unknown: ids that messages mention and users.json does not name.
    """

    def __init__(self, files: Sequence[ExportFile]) -> None:
        self._users = {text_of(user.get("id")): user for file in files if file.stem in ("users", "org_users")
                       for user in objects_of(file.content)}
        display = {key: _name(user) for key, user in self._users.items()}
        shared = Counter(display.values())
        self._names = {key: name if shared[name] == 1 else f"{name} ({text_of(self._users[key].get('name')) or key})"
                       for key, name in display.items()}
        self._channels = {text_of(entry.get("id")): entry for file in files
                          if file.stem in ("channels", "groups", "dms", "mpims") for entry in objects_of(file.content)}
        self._spoke: set[str] = set()
        self.unknown: set[str] = set()

    def name(self, key: str) -> str:
        """Return a person's name; the id where users.json does not name it."""
        if key not in self._names:
            self.unknown.add(key)
        return self._names.get(key, key)

    def channel(self, folder: str) -> str:
        """Return a channel's name: its folder's, or for direct messages the members'."""
        entry = self._channels.get(folder, {})
        members = entry.get("members")
        if not text_of(entry.get("name")) and isinstance(members, list) and members:
            return ", ".join(self.name(m) for m in members if isinstance(m, str))
        return text_of(entry.get("name")) or folder

    def speaker(self, message: dict[str, Any]) -> tuple[str | None, bool]:
        """Return who wrote a message, and whether it is a bot."""
        key = text_of(message.get("user"))
        self._spoke.add(key)
        user = self._users.get(key, {})
        bot = bool(message.get("subtype") == "bot_message" or user.get("is_bot") is True or key == "USLACKBOT"
                   or message.get("bot_id") and not (user or key))
        if bot:
            profile = object_of(message.get("bot_profile"))
            name = text_of(message.get("username")) or text_of(profile.get("name"))
            return name or (self.name(key) if key else text_of(message.get("bot_id"))) or None, True
        profile = object_of(message.get("user_profile"))
        if key and key not in self._names and (name := _name({"profile": profile})):
            self._names[key] = name
        return (self.name(key) if key else text_of(message.get("username"))) or None, False

    def left(self) -> int:
        """Count the people who wrote something and are marked as deleted."""
        return sum(self._users.get(key, {}).get("deleted") is True for key in self._spoke)

    def plain(self, text: str) -> str:
        """Return a text with names in the place of ids, links as they read, and no HTML entities."""
        plain = _MARK.sub(self._mark, text)
        with suppress(ValueError):  # of an entity whose number has thousands of digits
            plain = html.unescape(plain)
        return plain.strip()

    def _mark(self, match: re.Match[str]) -> str:
        target, label = match[1], match[2] or ""
        if target.startswith("@"):
            return f"@{self.name(target[1:]) if target[1:] in self._names or not label else label}"
        if target.startswith("#"):
            return f"#{label or text_of(self._channels.get(target[1:], {}).get('name')) or target[1:]}"
        if target.startswith("!"):
            return label or "@" + target[1:].split("^")[0]
        plain = target.removeprefix("mailto:")
        return plain if not label or label == plain else f"{label} ({plain})"


def _name(user: dict[str, Any]) -> str:
    profile = object_of(user.get("profile"))
    return next((name for holder, key in ((profile, "display_name"), (profile, "real_name"), (user, "real_name"),
                                          (user, "name"), (user, "id")) if (name := text_of(holder.get(key)))), "")


_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPOKEN = {"", "thread_broadcast", "reply_broadcast", "file_share", "file_comment", "bot_message", "me_message"}


class SlackMessage(NamedTuple):
    """A message and the thread that it belongs to, by the first message's timestamp; "" for none."""

    thread: str
    message: ChatMessage


class Slack:
    """One conversation for each channel, and one for each thread."""

    name: ClassVar = "slack"
    title: ClassVar = "Slack export"

    def matches(self, file: ExportFile) -> bool:
        """Return whether the file holds the messages of a channel's day."""
        if file.ending != ".json" or not isinstance(file.content, list):
            return False
        dated = bool(_DAY.fullmatch(file.stem))
        return dated and not file.content or any(
            isinstance(m.get("ts"), str) and (dated or m.get("type") == "message") for m in objects_of(file.content))

    def read(self, files: Sequence[ExportFile], tally: Tally) -> list[Conversation]:
        """Return the channels and threads."""
        people = People(files)
        channels: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in filter(self.matches, files):
            name = file.folder if file.folder and _DAY.fullmatch(file.stem) else file.stem
            channels[name] += objects_of(file.content)
        read = []
        for name in sorted(channels):
            read += _conversations(people.channel(name), channels[name], people, tally)
        tally.add("people who are no longer members; they keep their names", people.left())
        tally.add("ids of people whom users.json does not name", len(people.unknown))
        return read


def _conversations(channel: str, raw: list[dict[str, Any]], people: People, tally: Tally) -> list[Conversation]:
    channel_messages: list[ChatMessage] = []
    threads: dict[str, list[ChatMessage]] = defaultdict(list)
    for thread, message in _in_order(raw, people, tally):
        (threads[thread] if thread else channel_messages).append(message)
    read = [Conversation(channel, channel_messages, endless=True)] if channel_messages else []
    return read + [Conversation(f"{channel}, thread: {first_words(messages)}", messages)
                   for _, messages in sorted(threads.items())]


def _in_order(raw: list[dict[str, Any]], people: People, tally: Tally) -> list[SlackMessage]:
    """Return the messages by their timestamps, edits applied, each once."""
    current: dict[str, dict[str, Any]] = {}
    removed: set[str] = set()
    for event in raw:
        kind, inner = text_of(event.get("subtype")), object_of(event.get("message"))
        if kind == "message_changed" and inner:
            current[text_of(inner.get("ts"))] = inner
            tally.add("edited messages, taken as they are now")
        elif kind == "message_deleted":
            removed.add(text_of(event.get("deleted_ts") or object_of(event.get("previous_message")).get("ts")))
        elif (stamp := text_of(event.get("ts"))) in current:
            tally.add("messages that occur twice, taken once")
            current[stamp] = {**event, **current[stamp]}
        else:
            current[stamp] = event
    tally.add("deleted messages left out", len(removed & current.keys()))
    started = {text_of(m.get("thread_ts")) for stamp, m in current.items() if text_of(m.get("thread_ts")) != stamp}
    read = []
    for stamp in sorted(current.keys() - removed, key=lambda s: (str(epoch(s) or ""), s)):
        if message := _message(current[stamp], people, tally):
            thread = text_of(current[stamp].get("thread_ts")) or stamp
            read.append(SlackMessage(thread if thread in started else "", message))
    return read


def _message(raw: dict[str, Any], people: People, tally: Tally) -> ChatMessage | None:
    kind, said_on = text_of(raw.get("subtype")), epoch(raw.get("ts"))
    if kind == "tombstone":
        tally.add("deleted messages left out")
        return None
    if kind not in _SPOKEN or text_of(raw.get("type")) not in ("", "message") or said_on is None:
        tally.add("notices left out (joins, topics, pins)")
        return None
    tally.add("edited messages, taken as they are now", isinstance(raw.get("edited"), dict))
    lines = [people.plain(text_of(raw.get("text")))]
    if not lines[0]:
        lines = [people.plain(text_of(a.get("text")) or text_of(a.get("fallback")))
                 for a in objects_of(raw.get("attachments"))]
    lines += [_file(f) for f in objects_of(raw.get("files")) or objects_of([raw.get("file")])]
    text = "\n".join(line for line in lines if line)
    speaker, is_bot = people.speaker(raw)
    tally.add("messages of bots, under the role assistant", is_bot and bool(text))
    return ChatMessage("assistant" if is_bot else "user", text, speaker, said_on) if text else None


def _file(file: dict[str, Any]) -> str:
    if file.get("mode") in ("tombstone", "hidden_by_limit"):
        return placeholder("file")
    return attachment(file.get("name") or file.get("title"), file.get("mimetype"))
