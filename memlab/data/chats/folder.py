"""The folder that ``data=custom`` reads: sessions.jsonl, and import.json with the settings of all imports into it.

questions.jsonl cites sessions by name and turns by number: a later export renames and removes no stored session, and
new turns come after its others. Sessions are recognised by their content, since a vendor may give a conversation
another title, and an edited question starts another branch of it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from memlab.data.chats.conversation import ChatSession, Split, distinct
from memlab.support import foreign
from memlab.support.errors import MemlabError
from memlab.support.files import atomic_write, disk_faults, write_json
from memlab.support.text.display import replace_surrogates

MOST_CANDIDATES = 100
"""Stored sessions that a new one is compared with at most: many may begin with the same words on the same day."""

_NUMBER = re.compile(r" \(\d{1,9}\)$")
Line = dict[str, Any]
"""A line of sessions.jsonl."""

SESSIONS, SETTINGS = "sessions.jsonl", "import.json"
MOST_OF_SESSIONS = 4_000_000_000
"""Bytes of sessions.jsonl at most, as ``data=custom`` reads it."""

_ELSEWHERE = "give another --out, or --replace"


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


@dataclass(frozen=True)
class ImportSettings:
    """What all imports into a folder have in common: with others, the same conversation would be other sessions."""

    corpus: str
    split: Split
    timezone: str


def common_settings(folder: Path, given: Mapping[str, Any], default: ImportSettings, *,
                    fresh: bool = False) -> ImportSettings:
    """Return the settings of a folder, or for a ``fresh`` one those that are given, and the default for the rest.

    Raises MemlabError where a given one differs from the folder's, or where another program wrote the sessions.
    """
    chosen = {name: value for name, value in given.items() if value is not None}
    if fresh or not (folder / SESSIONS).exists():
        return replace(default, **chosen)
    try:
        settings = ImportSettings(**foreign.read_json(folder / SETTINGS))
    except (OSError, ValueError, TypeError) as fault:
        raise MemlabError("other sessions are there already, and memlab import did not write them",
                          where=str(folder / SESSIONS), fix=_ELSEWHERE) from fault
    for name, value in chosen.items():
        if value != (stored := getattr(settings, name)):
            raise MemlabError(f"{folder} holds sessions of --{name} {stored}", where=f"--{name} {value}",
                              fix=f"leave --{name} out, or {_ELSEWHERE}")
    return settings


def update_folder(folder: Path, settings: ImportSettings, sessions: Iterable[ChatSession], *, source: str = "",
                  fresh: bool = False) -> Changes:
    """Add sessions to a folder, or replace those of a ``fresh`` one; an import that changes nothing writes nothing.

    source: name of the export's format. Raises MemlabError where the folder cannot be read or written.
    """
    path = folder / SESSIONS
    lines = [_line(settings.corpus, session, source) for session in sessions]
    with disk_faults(path, other="give another --out"):
        fresh = fresh or not path.exists()
        merged, changes = merge([] if fresh else _read(path), lines)
        merged.sort(key=lambda line: line["said_on"] or "")
        content = "".join(f"{replace_surrogates(json.dumps(line, ensure_ascii=False))}\n" for line in merged)
        if fresh:  # never sessions without settings, or with those of others: a later import would refuse or mix them
            path.unlink(missing_ok=True)
            write_json(folder / SETTINGS, asdict(settings))
        if fresh or path.read_bytes() != content.encode():
            atomic_write(path, content)
    return changes


def _line(corpus: str, session: ChatSession, source: str) -> Line:
    turns = [{"role": turn.role, **({"speaker": turn.speaker} if turn.speaker else {}), "text": turn.text}
             for turn in session.turns]
    fields = {key: value for key, value in (("room", session.room), ("source", source)) if value}
    return {"corpus": corpus, "session": session.name,
            "said_on": session.said_on and session.said_on.isoformat(timespec="minutes"), **fields, "turns": turns}


def _read(path: Path) -> list[Line]:
    """Return the lines of sessions.jsonl; raise MemlabError for one that is no session."""
    stored: list[Line] = []
    number = 0
    try:
        for text in foreign.read_bytes(path, MOST_OF_SESSIONS).decode("utf-8-sig").split("\n"):
            number += 1  # noqa: SIM113  (the fault names it)
            if text.strip():
                stored.append(foreign.load_json(text))
                if not _is_session(stored[-1]):
                    raise ValueError("it is no session")
    except ValueError as fault:
        raise MemlabError(f"the sessions there cannot be added to: line {number}: {str(fault)[:80]}", where=str(path),
                          fix=f"see memlab data check, or {_ELSEWHERE}") from fault
    return stored


def _is_session(line: object) -> bool:
    turns = line.get("turns") if isinstance(line, dict) else None
    return (isinstance(line, dict) and isinstance(turns, list) and isinstance(line.get("said_on", 0), str | None)
            and all(isinstance(line.get(name), str) for name in ("corpus", "session"))
            and all(isinstance(turn, dict) and isinstance(turn.get("text"), str) and isinstance(turn.get("role"), str)
                    for turn in turns))
