"""Removal of duplicate conversations: overlapping exports, backups, files that were copied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memlab.data.chats.conversation import ChatMessage, Conversation, Tally


def single_copies(conversations: Sequence[Conversation], tally: Tally) -> list[Conversation]:
    """Return each conversation once, and count the others.

    By the vendor's id, the latest version is taken, as the vendor shows it. Chats that go on for years have no id: two
    of one title that share messages are joined. Others are copies if all their messages are the same, with their times.
    """
    groups: dict[object, list[Conversation]] = {}
    for number, conversation in enumerate(conversations):
        groups.setdefault(_identity(conversation) or number, []).append(conversation)
    kept: list[Conversation] = []
    for group in groups.values():
        kept += group if len(group) == 1 else _single(group)
    tally.add("conversations that occur twice, taken once", len(conversations) - len(kept))
    return kept


def _identity(conversation: Conversation) -> object:
    """Return what copies of a conversation have in common; None if nothing tells copies from others."""
    if conversation.key:
        return "id", conversation.key
    if conversation.endless:
        return "title", conversation.title
    dated = any(isinstance(message.said_on, datetime) for message in conversation.messages)
    return ("messages", *map(_content, conversation.messages)) if dated else None


def _single(group: list[Conversation]) -> list[Conversation]:
    if group[0].key:
        return [max(group, key=lambda c: (max((str(m.said_on or "") for m in c.messages), default=""),
                                          len(c.messages)))]
    if group[0].endless:
        return _join(group)
    return group[:1]


def _join(group: list[Conversation]) -> list[Conversation]:
    """Join chats that share messages, in the order of time."""
    whole, *others = sorted(group, key=lambda c: len(c.messages), reverse=True)
    apart = []
    for other in others:
        there = Counter(map(_content, whole.messages))
        new: list[ChatMessage] = []
        for message in other.messages:
            if there[_content(message)]:
                there[_content(message)] -= 1
            else:
                new.append(message)
        if len(new) == len(other.messages):
            apart.append(other)
        elif new:
            whole = replace(whole, messages=sorted([*whole.messages, *new], key=lambda m: str(m.said_on or "")))
    return [whole, *apart]


def _content(message: ChatMessage) -> tuple[str, str, str]:
    return str(message.said_on or ""), message.role, message.text
