"""Branches of conversations whose messages name their parents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memlab.data.chats.conversation import Tally

OTHERS = "messages of other branches left out (edited questions, repeated answers)"


def shown_branch(messages: list[dict[str, Any]], key: Callable[[dict[str, Any]], str],
                 parent: Callable[[dict[str, Any]], str], leaf: str, tally: Tally,
                 is_spoken: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
    """Return the messages up to ``leaf``, else to the last, and count the others; all where none names its parent.

    messages: in the order of time. key, parent: the ids of a message, "" for none. leaf: an id, "" for none. is_spoken:
    whether a message says something. The first message may name a parent that is in no export, as do other versions of
    it.
    """
    by_id = {name: message for message in messages if (name := key(message))}
    named = {name: parent(message) for name, message in by_id.items()}
    if len(by_id) < len(messages) or not any(above in by_id for above in named.values()):
        return messages
    root = next(iter(named.values()))
    parents = mend_parents({name: above if above != root or above in by_id else None for name, above in named.items()})
    path = path_to(leaf if leaf in by_id else next(reversed(by_id)), parents)
    others = sum(is_spoken(by_id[name]) for name in by_id.keys() - {*path})
    tally.add(OTHERS, others)
    tally.add("conversations without a current message: the branch of the latest was taken",
              bool(leaf and leaf not in by_id))
    return [by_id[name] for name in path]


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


def mend_parents(parents: Mapping[str, str | None]) -> dict[str, str | None]:
    """Let each message whose parent is not there follow the one before it; ``parents``: in the order of time.

    >>> mend_parents({"a": None, "b": "a", "d": "c"})
    {'a': None, 'b': 'a', 'd': 'b'}
    """
    before = dict(zip(parents, [None, *parents]))
    return {key: before[key] if parent and parent not in parents else parent for key, parent in parents.items()}
