"""Sessions of a later export merged with stored ones, so that what questions cite stays where it is.

questions.jsonl cites sessions by name and turns by number: no stored session is renamed or removed, and new turns come
after its others. Sessions are recognised by their content, since a vendor may give a conversation another title, and an
edited question starts another branch of it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memlab.data.chats.sessions import distinct

MOST_CANDIDATES = 100
"""Stored sessions that a new one is compared with at most: many may begin with the same words on the same day."""

_NUMBER = re.compile(r" \(\d{1,9}\)$")

Line = dict[str, Any]
"""A line of sessions.jsonl."""


@dataclass(frozen=True)
class Changes:
    """What an import did to a folder.

    new, went_on, unchanged: sessions of the export. turns: those that were added to sessions that went on. absent:
    stored sessions that the export does not hold. stored: sessions in the folder now.
    """

    new: int = 0
    went_on: int = 0
    turns: int = 0
    unchanged: int = 0
    absent: int = 0
    stored: int = 0


def merge(stored: Sequence[Line], new: Sequence[Line]) -> tuple[list[Line], Changes]:
    """Return the stored lines, the same objects where nothing is new, and after them those of new sessions.

    The time is linear in the lines: a session is compared with few others. Corpora are kept apart.
    """
    partners = _partners(stored, new)
    merged = list(stored)
    turns = went_on = 0
    for number, place in partners.items():
        extended, added = _extend(stored[place]["turns"], new[number]["turns"])
        if added:
            merged[place] = {**stored[place], "turns": extended}
            turns, went_on = turns + added, went_on + 1
    others = [line for number, line in enumerate(new) if number not in partners]
    taken = {line["session"] for line in stored}
    wanted = (_NUMBER.sub("", line["session"]) if line["session"] in taken else line["session"] for line in others)
    merged += [{**line, "session": name} for line, name in zip(others, distinct(wanted, taken))]
    return merged, Changes(len(others), went_on, turns, len(partners) - went_on, len(stored) - len(partners),
                           len(merged))


def _partners(stored: Sequence[Line], new: Sequence[Line]) -> dict[int, int]:
    """Return the place of the stored session for each new one that has one: the same, one that goes on, one changed."""
    places: dict[object, deque[int]] = defaultdict(deque)
    for place, line in enumerate(stored):
        places[_whole(line)].append(place)
    partners = {number: queue.popleft() for number, line in enumerate(new) if (queue := places[_whole(line)])}
    alike: dict[object, list[int]] = defaultdict(list)
    for place in sorted({*range(len(stored))} - {*partners.values()}):
        for trait in _traits(stored[place]):
            alike[trait].append(place)
    pairs = {(_score(stored[place], line), -number, -place) for number, line in enumerate(new) if number not in partners
             for trait in _traits(line) for place in alike[trait][:MOST_CANDIDATES]}
    taken = set(partners.values())
    for score, number, place in sorted(pairs, reverse=True):
        if score > (False, 0) and -number not in partners and -place not in taken:
            partners[-number] = -place
            taken.add(-place)
    return partners


def goes_on(role: str, text: str, later: str) -> bool:
    r"""Return whether a later text is the same, or that of an assistant who went on.

    >>> goes_on("assistant", "Yes.", "Yes.\nAnd no."), goes_on("user", "Yes.", "Yes.\nAnd no.")
    (True, False)
    """
    return text == later or role == "assistant" and later.startswith(f"{text}\n")


def _role_and_text(turn: Line) -> tuple[str, str]:
    """Return what is compared of a turn; people change their names."""
    return turn["role"], turn["text"]


def _whole(line: Line) -> object:
    return line["corpus"], line["said_on"], tuple(map(_role_and_text, line["turns"]))


def _traits(line: Line) -> Iterable[object]:
    """Yield the time with the first turn, and the name, which begins with the day where there is one."""
    if line["turns"]:
        yield line["corpus"], line["said_on"], _role_and_text(line["turns"][0])
    yield line["corpus"], _NUMBER.sub("", line["session"])


def _score(stored: Line, new: Line) -> tuple[bool, int]:
    """Return whether one session begins with the other, and the turns that they have in common.

    These are 0 for sessions of other days, and where they are less than half of the shorter one's.
    """
    short, long = sorted((stored["turns"], new["turns"]), key=len)
    if short and stored["said_on"] == new["said_on"]:
        *before, last = map(_role_and_text, short)
        role, later = _role_and_text(long[len(before)])
        same = [_role_and_text(turn) for turn in long[:len(before)]] == before and role == last[0]
        if same and (goes_on(*last, later) or goes_on(role, later, last[1])):
            return True, len(short)
    if not stored["said_on"] or not new["said_on"] or stored["said_on"][:10] != new["said_on"][:10]:
        return False, 0
    common = (Counter(map(_role_and_text, stored["turns"])) & Counter(map(_role_and_text, new["turns"]))).total()
    return False, common if 2 * common >= len(short) else 0


def _extend(stored: Sequence[Line], new: Sequence[Line]) -> tuple[list[Line], int]:
    """Return the stored turns with what is new, and the number of turns that are new or went on.

    >>> def turns(*texts):
    ...     return [{"role": "assistant" if n % 2 else "user", "text": text} for n, text in enumerate(texts)]
    >>> [turn["text"] for turn in _extend(turns("Hi", "Yes?"), turns("Hi", "Yes?\\nSay it.", "No."))[0]]
    ['Hi', 'Yes?\\nSay it.', 'No.']
    """
    there = Counter(map(_role_and_text, stored))
    turns, added = list(stored), 0
    for place, turn in enumerate(new):
        role, text = _role_and_text(turn)
        if there[role, text]:
            there[role, text] -= 1
            continue
        before = _role_and_text(stored[place]) if place < len(stored) else ("", "")
        if there[before] and before[0] == role and (goes_on(*before, text) or goes_on(role, text, before[1])):
            there[before] -= 1
            turns[place] = {**stored[place], "text": max(before[1], text, key=len)}  # the other is an earlier export's
            added += len(text) > len(before[1])
        else:
            turns.append(turn)
            added += 1
    return turns, added
