"""REALTALK: ten chats of three weeks between two people, some seventy questions each.

Lee et al., "REALTALK: A 21-Day Real-World Dataset for Long-Term Conversation" (2025), github.com/danny911kr/REALTALK.
The authors state no licence: for local use, never to be passed on. Reads the folder of ``Chat_*.json``, or one of them.
"""

from __future__ import annotations

import re
from datetime import datetime
from itertools import chain
from typing import Any, ClassVar

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.several import SeveralFiles
from memlab.data.subset import known_types
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "commonsense"}

_SESSION = re.compile(r"session_(\d{1,9})")
_ID = r"D\s*+(?::\s*+)?(\d{1,9})\s*[:;]\s*(\d{1,9})(?!\d)"  # "D17;39" stands for D17:39
_CITED = re.compile(rf"{_ID}(?:\s*[-–]\s*(?:{_ID}|(\d{{1,9}})(?!\d)))?")
_DATE = "%d.%m.%Y, %H:%M:%S"

MessageId = tuple[int, int]
"""The session and the message as a ``dia_id`` numbers them."""


@stage
class RealTalk(SeveralFiles):
    """A chat is a corpus; both people are users with a name; a question is (file, index)."""

    benchmark: ClassVar = "realtalk"
    pattern: ClassVar = "Chat_*.json"

    path: LocalPath | None = None  # folder of Chat_*.json, or one file; null = $MEMLAB_HOME/data/realtalk

    def __post_init__(self) -> None:
        super().__post_init__()
        known_types(self.types, CATEGORIES.values())

    def load(self) -> Tables:
        """Read the files; raise MemlabError naming file and field where one is not as expected."""
        build, first = Builder(), 0
        for corpus, path in enumerate(self._files()):
            chat = readers.whole(path, dict)
            build.corpus(corpus=corpus, name=path.stem)
            positions, asked_on = _sessions(build, corpus, chat, str(path))
            questions = readers.need(chat, "qa", list, str(path))
            for index, item in enumerate(questions):
                where = f"{path}, field qa[{index}]"
                number = readers.need(item, "category", int, where)
                if number not in CATEGORIES:
                    raise MemlabError(f"expected 1, 2 or 3, got {number}", where=f"{where}, field category")
                cited = [readers.text_of(e, f"{where}, field evidence")
                         for e in readers.need(item, "evidence", list, where)]
                evidence = cited_positions(cited, positions)
                build.missing_evidence(question=first + index, number=sum(
                    bool(text.strip()) and not cited_positions([text], positions) for text in cited))
                build.question(question=first + index, corpus=corpus, text=readers.need(item, "question", str, where),
                               asked_on=asked_on, name=f"{path.stem}:{index}",
                               answer=str(readers.need(item, "answer", (str, int, float), where)),
                               category=CATEGORIES[number], abstain=False, scored=bool(evidence))
                for session, turn in evidence:
                    build.evidence(question=first + index, session=session, turn=turn)
            first += len(questions)
        return self.cut(build.tables(), build.missing)

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["REALTALK gives no question date: the time of a chat's last message is used, so the as-of filter hides "
                "nothing. Its questions may name a person by another name than the chat does.", *super().notes()]


def cited_positions(cited: list[str], positions: dict[MessageId, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the positions of all messages that references name, each once; a range names all messages between.

    >>> chat = {(1, n): (0, n - 1) for n in (1, 2, 3, 4)} | {(2, 1): (1, 0)}
    >>> cited_positions(["D1:3-D2:1", "D1;1", "D9:9", ""], chat)
    [(0, 0), (0, 2), (0, 3), (1, 0)]
    """
    named: set[tuple[int, int]] = set()
    for match in chain.from_iterable(map(_CITED.finditer, cited)):
        one = (int(match[1]), int(match[2]))
        other = (int(match[3] or match[1]), int(match[4] or match[5])) if match[4] or match[5] else one
        low, high = min(one, other), max(one, other)
        named |= {place for message, place in positions.items() if low <= message <= high}
    return sorted(named)


def _sessions(build: Builder, corpus: int, chat: dict[str, Any],
              where: str) -> tuple[dict[MessageId, tuple[int, int]], datetime]:
    """Add the sessions in the order of their dates; return the position of each message, and the last date."""
    names = {name.casefold(): name for name in readers.need(chat, "name", dict, where).values() if type(name) is str}
    sessions = []
    for key in chat:
        if match := _SESSION.fullmatch(key):
            date = readers.need(chat, f"{key}_date_time", str, where)
            sessions.append((_moment(date, f"{where}, field {key}_date_time"), int(match[1]),
                             readers.need(chat, key, list, where)))
    if not sessions:
        raise MemlabError("there is no session, expected a list under session_1", where=where)
    sessions.sort(key=lambda s: s[:2])
    positions: dict[MessageId, tuple[int, int]] = {}
    last = sessions[-1][0]
    for session, (said_on, number, messages) in enumerate(sessions):
        build.session(corpus=corpus, session=session, said_on=said_on, name=f"session_{number}")
        for turn, item in enumerate(messages):
            spot = f"{where}, field session_{number}[{turn}]"
            dia = readers.need(item, "dia_id", str, spot)
            if match := re.fullmatch(_ID, dia):
                positions[int(match[1]), int(match[2])] = (session, turn)
            if "date_time" in item:
                last = max(last, _moment(readers.need(item, "date_time", str, spot), f"{spot}, field date_time"))
            speaker = readers.need(item, "speaker", str, spot)
            build.turn(corpus=corpus, session=session, turn=turn, role="user",
                       speaker=names.get(speaker.casefold(), speaker), text=_text(item, spot), name=dia)
    return positions, last


def _moment(text: str, where: str) -> datetime:
    return readers.moment(text, _DATE, where, "29.12.2023, 22:42:04")


def _text(message: dict[str, Any], where: str) -> str:
    """Return what was written and the captions of shared pictures."""
    text: str = readers.need(message, "clean_text", (str, type(None)), where) or ""
    captions = message.get("blip_caption") or []
    listed = [captions] if type(captions) is str else captions
    if type(listed) is not list:
        raise MemlabError("expected text or a list", where=f"{where}, field blip_caption")
    pictures = [readers.text_of(c, f"{where}, field blip_caption").strip() for c in listed]
    return " ".join([text, *(f"[image: {caption}]" for caption in pictures if caption)]).strip()
