"""Removal of duplicate conversations: overlapping exports, backups, files that were copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memlab.data.chats.conversation import Conversation, Tally


def single_copies(conversations: Sequence[Conversation], tally: Tally) -> list[Conversation]:
    """Return each conversation once, and count the others.

    By the vendor's id, the latest version is taken, as the vendor shows it. Chats that go on for years have no id: two
    of one title that share messages are joined. Others are copies if all their messages are the same, with their times.
    """
    groups: dict[object, list[Conversation]] = {}
    for number, conversation in enumerate(conversations):
        groups.setdefault(_identity(conversation) or number, []).append(conversation)
    kept: list[Conversation] = []
    for first, *others in groups.values():
        if first.key:
            kept.append(max([first, *others], key=lambda c: (_last(c), len(c.messages))))
        else:
            kept += _join([first, *others]) if first.endless and others else [first]
    tally.add("conversations that occur twice, taken once", len(conversations) - len(kept))
    return kept


def _identity(conversation: Conversation) -> object:
    """Return what copies of a conversation have in common; None if nothing tells copies from others."""
    if conversation.key or conversation.endless:
        return conversation.endless, conversation.key or conversation.title
    dated = any(isinstance(message.said_on, datetime) for message in conversation.messages)
    return tuple(map(_content, conversation.messages)) if dated else None


def _last(conversation: Conversation) -> str:
    return max((str(message.said_on or "") for message in conversation.messages), default="")


def _join(group: list[Conversation]) -> list[Conversation]:
    """Join chats that share messages, in the order of time."""
    whole, *others = sorted(group, key=lambda c: len(c.messages), reverse=True)
    apart = []
    for other in others:
        new = Counter(map(_content, other.messages)) - Counter(map(_content, whole.messages))
        if new.total() == len(other.messages):
            apart.append(other)
            continue
        added = []
        for message in reversed(other.messages):  # of what occurs more often here, the last
            if new[_content(message)]:
                new[_content(message)] -= 1
                added.append(message)
        messages = sorted([*whole.messages, *reversed(added)], key=lambda m: str(m.said_on or ""))
        whole = replace(whole, messages=messages)
    return [whole, *apart]


def _content(message: ChatMessage) -> tuple[str, str, str]:
    return str(message.said_on or ""), message.role, message.text
