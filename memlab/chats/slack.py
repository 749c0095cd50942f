"""Slack's export: a folder for each channel with a .json for each day, and users.json; as a folder or a zip.

A thread is a conversation of its own, since its replies come days later; the other messages of a channel are cut by
days. What Slack itself writes (joins, topics, pins) is left out and counted. The fields are those of Slack's page "How
to read Slack data exports" and of its message events.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from memlab.chats.conversation import (
    ChatMessage,
    Conversation,
    Tally,
    epoch,
    first_words,
    object_of,
    objects_of,
    text_of,
)
from memlab.chats.slack_blocks import Cards, file_text, same, with_lines
from memlab.chats.slack_people import People
from memlab.chats.source import ExportFile

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPOKEN = {"", "thread_broadcast", "reply_broadcast", "file_share", "file_comment", "bot_message", "me_message",
           "slackbot_response"}
_STAND_INS = {"This content can't be displayed.", "This message contains interactive elements."}


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
    sort = text_of(raw.get("type"))
    if kind not in _SPOKEN or sort not in ("", "message") or said_on is None:
        tally.add("notices left out", kind=kind or sort)
        return None
    tally.add("edited messages, taken as they are now", isinstance(raw.get("edited"), dict))
    for reaction in objects_of(raw.get("reactions")):
        count = reaction.get("count")
        tally.add("reactions left out", count if isinstance(count, int) and count > 0 else 1)
    cards = Cards(people, tally)
    text = people.plain(raw.get("text"))
    blocks, attachments = cards.blocks(raw.get("blocks")), cards.attachments(raw.get("attachments"))
    if (blocks or attachments) and text.replace("\u2019", "'") in _STAND_INS:
        text = ""
    files = objects_of(raw.get("files")) or objects_of([raw.get("file")])
    text = "\n".join(filter(None, [with_lines(same(text, blocks), attachments), *map(file_text, files)]))
    speaker, is_bot = people.speaker(raw)
    tally.add("messages of bots, under the role assistant", is_bot and bool(text))
    tally.add("messages without a text left out", not text)
    return ChatMessage("assistant" if is_bot else "user", text, speaker, said_on) if text else None
