"""Slack's export: a folder for each channel with a .json for each day, and users.json; as a folder or a zip.

A thread is a conversation of its own, since its replies come days later; the other messages of a channel are cut by
days. What Slack itself writes (joins, topics, pins) is left out and counted. The fields are those of Slack's page "How
to read Slack data exports" and of its message events.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from memlab.data.chats.content import object_of, objects_of, text_of
from memlab.data.chats.conversation import ChatMessage, Conversation, Tally, first_words
from memlab.data.chats.slack_texts import People, file_text, same, with_lines
from memlab.data.chats.source import ExportFile
from memlab.data.chats.times import read_time

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_SPOKEN = {"", "thread_broadcast", "reply_broadcast", "file_share", "file_comment", "bot_message", "me_message",
           "slackbot_response"}
_STAND_INS = {"This content can't be displayed.", "This message contains interactive elements."}


def matches(file: ExportFile) -> bool:
    """Return whether the file holds the messages of a channel's day."""
    if not file.name.lower().endswith(".json") or not isinstance(file.content, list):
        return False
    dated = bool(_DAY.fullmatch(file.stem))
    return dated and not file.content or any(dated + ("ts" in m) + (m.get("type") == "message") > 1
                                             for m in objects_of(file.content) if "role" not in m)


def read(files: Sequence[ExportFile], tally: Tally, _: object = None) -> list[Conversation]:
    """Return one conversation for each channel, and one for each thread."""
    people = People(files, tally)
    channels: dict[str, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
    for file in filter(matches, files):
        name = file.folder if file.folder and _DAY.fullmatch(file.stem) else file.stem
        last = file.stem
        for place, event in enumerate(objects_of(file.content)):  # one without a timestamp follows the one before it
            stamp = _stamp(event.get("ts"))
            last, stamp = (stamp, stamp) if _time(stamp) else (last, f"{last}#{place:06}")
            channels[name].append((stamp, event))
    found = []
    for name in sorted(channels):
        found += _conversations(people.channel(name), channels[name], people, tally)
    tally.add("ids of people whom users.json does not name", len(people.unknown))
    return found


def _stamp(value: object) -> str:
    """Return a timestamp as Slack writes it, which is also the name of its message."""
    return f"{value:.6f}" if isinstance(value, int | float) else text_of(value)


def _time(stamp: str) -> date | datetime | None:
    return read_time(stamp.partition("#")[0])


def _conversations(channel: str, events: list[tuple[str, dict[str, Any]]], people: People,
                   tally: Tally) -> list[Conversation]:
    """Return a channel and its threads: messages by their timestamps, edits applied, each once."""
    current: dict[str, dict[str, Any]] = {}
    removed: set[str] = set()
    for stamp, event in events:
        kind, inner = text_of(event.get("subtype")), object_of(event.get("message"))
        if kind == "message_changed" and inner:
            current[_stamp(inner.get("ts")) or stamp] = inner
            tally.add("edited messages, taken as they are now")
        elif kind == "message_deleted":
            removed.add(_stamp(event.get("deleted_ts") or object_of(event.get("previous_message")).get("ts")))
        else:
            tally.add("messages that occur twice, taken once", stamp in current)
            current[stamp] = {**event, **current.get(stamp, {})}
    tally.add("deleted messages left out", len(removed & current.keys()))
    started = {thread for stamp, m in current.items() if (thread := _stamp(m.get("thread_ts"))) != stamp}
    threads: dict[str, list[ChatMessage]] = defaultdict(list)  # "" for what is in none
    for stamp in sorted(current.keys() - removed, key=lambda s: (str(_time(s) or ""), s)):
        if message := _message(current[stamp], _time(stamp), people, tally):
            thread = _stamp(current[stamp].get("thread_ts")) or stamp
            threads[thread if thread in started else ""].append(message)
    return [Conversation(f"{channel}, thread: {first_words(messages)}" if thread else channel, messages,
                         endless=not thread, room=channel) for thread, messages in sorted(threads.items())]


def _message(raw: dict[str, Any], said_on: date | datetime | None, people: People, tally: Tally) -> ChatMessage | None:
    kind = text_of(raw.get("subtype"))
    sort = text_of(raw.get("type"))
    if kind not in _SPOKEN or sort not in ("", "message"):
        tally.add("notices left out", kind=kind or sort)  # a tombstone stands for a deleted message
        return None
    tally.add("edited messages, taken as they are now", isinstance(raw.get("edited"), dict))
    counts = (reaction.get("count") for reaction in objects_of(raw.get("reactions")))
    tally.add("reactions left out", sum(max(count, 1) if isinstance(count, int) else 1 for count in counts))
    text = people.plain(raw.get("text"))
    blocks, attachments = people.blocks(raw.get("blocks")), people.attachments(raw.get("attachments"))
    if (blocks or attachments) and text.replace("\u2019", "'") in _STAND_INS:
        text = ""
    files = objects_of(raw.get("files")) or objects_of([raw.get("file")])
    text = "\n".join(filter(None, [with_lines(same(text, blocks), attachments), *map(file_text, files)]))
    speaker, is_bot = people.speaker(raw)
    tally.add("messages of bots, under the role assistant", is_bot and bool(text))
    tally.add("messages without a text left out", not text)
    return ChatMessage("assistant" if is_bot else "user", text, speaker, said_on) if text else None
