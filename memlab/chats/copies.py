"""Conversations that several files of an export hold, taken once: exports that overlap, backups, files copied twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from memlab.chats.conversation import ChatMessage, Conversation, Tally


def single_copies(conversations: Sequence[Conversation], tally: Tally) -> list[Conversation]:
    """Return each conversation once, and count the others.

    By the vendor's id, the latest version is taken, as the vendor shows it. Chats that go on for years have no id: two
    of one title that share messages are joined. Of other conversations, one with which another begins is dropped; only
    those with times can be recognised, since many may begin with the same words.
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
    first = conversation.messages[0] if conversation.messages else None
    return ("first", _content(first)) if first and isinstance(first.said_on, datetime) else None


def _single(group: list[Conversation]) -> list[Conversation]:
    if group[0].key:
        return [max(group, key=lambda c: (max((str(m.said_on or "") for m in c.messages), default=""),
                                          len(c.messages)))]
    if group[0].endless:
        return _join(group)
    ordered = sorted(group, key=lambda c: [_content(m) for m in c.messages])  # a beginning comes right before its end
    return [c for c, after in zip(ordered, [*ordered[1:], None]) if after is None or not _begins(c, after)]


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


def _begins(short: Conversation, long: Conversation) -> bool:
    """Return whether one conversation is the beginning of another; the assistant's last turn may have gone on."""
    *before, last = map(_content, short.messages)
    beginning = [_content(m) for m in long.messages[:len(before) + 1]]
    return (len(beginning) > len(before) and beginning[:-1] == before and beginning[-1][:2] == last[:2]
            and goes_on(last[1], last[2], beginning[-1][2]))


def goes_on(role: str, text: str, later: str) -> bool:
    r"""Return whether a later text is the same, or that of an assistant who went on.

    >>> goes_on("assistant", "Yes.", "Yes.\nAnd no."), goes_on("user", "Yes.", "Yes.\nAnd no.")
    (True, False)
    """
    return text == later or role == "assistant" and later.startswith(f"{text}\n")


def _content(message: ChatMessage) -> tuple[str, str, str]:
    return str(message.said_on or ""), message.role, message.text
