"""BEAM: chats with an assistant of 100 thousand to 10 million tokens, twenty questions each, two for each ability.

Tavakoli et al., "Beyond a Million Tokens: Benchmarking and Enhancing Long-Term Memory in LLMs" (2026),
github.com/mohammadtavakoli78/BEAM (its data card states the licence). Reads the folder ``chats`` of the repository.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from memlab.data import readers
from memlab.data.benchmarks import Builder, data_folder
from memlab.data.chats.refusal import instead
from memlab.data.fields import ROLES
from memlab.data.subset import Subset, known_types
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

Size = Literal["100K", "500K", "1M", "10M"]
SIZES: tuple[Size, ...] = get_args(Size)

ABILITIES = ("abstention", "contradiction_resolution", "event_ordering", "information_extraction",
             "instruction_following", "knowledge_update", "multi_session_reasoning", "preference_following",
             "summarization", "temporal_reasoning")

ANSWERS = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "rubric")
"""Keys of the gold answer, one of them in each question."""

CHATS = ("chat_trunecated.json", "chat.json")
"""Files of a chat (the first is spelt so); the first that is there is the one that its questions are about."""

_PLAN = re.compile(r"(?<!\s)\s*->->\s*\d+(?:\s*,\s*\d+)*\s*$")  # "->-> 1,1": indices of the plan that wrote the message
_DATE = "%B-%d-%Y"

Places = dict[str, list[tuple[int, int]]]
"""A message's id -> (session, turn) of all messages with that id."""


@stage
class Beam(Subset):
    """A chat is a corpus, one of its segments a session; a question is (chat, ability, index)."""

    counts_rounds: ClassVar = True
    size: Size = "100K"  # tokens of a chat
    path: LocalPath | None = None  # the folder ``chats``, or one of its sizes; null = $MEMLAB_HOME/data/beam

    def __post_init__(self) -> None:
        self._folders()
        known_types(self.types, ABILITIES)

    @property
    def name(self) -> str:
        """Such as ``beam_100k``, or ``beam_100k-pooled``."""
        return self.sized_name(f"beam_{self.size.lower()}")

    def load(self) -> Tables:
        """Read the files; raise MemlabError naming file and field where one is not as expected."""
        build, number = Builder(), 0
        for corpus, folder in enumerate(self._folders()):
            build.corpus(corpus=corpus, name=f"{self.size}/{folder.name}")
            places, asked_on = _sessions(build, corpus, _chat_file(folder))
            for ability, index, item, where in _questions(_questions_file(folder)):
                _question(build, number, corpus, item, where, ability, places, asked_on,
                          f"{self.size}/{folder.name}:{ability}:{index}")
                number += 1
        return self.cut(build.tables(), build.missing)

    def identity(self) -> dict[str, Any]:
        """Return the size, the checksums of the files and the options."""
        sums = {file.relative_to(folder.parent).as_posix(): readers.sha256(file)
                for folder in self._folders() for file in (_chat_file(folder), _questions_file(folder))}
        return {"benchmark": "beam", "size": self.size, "files": sums, **self.options()}

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["BEAM gives no question date: the day after a chat's last message is used. Where an id that a question "
                "cites belongs to several messages, they cannot be told apart, and the question is not scored.",
                *super().notes()]

    def _folders(self) -> list[Path]:
        """Return the folders of the chats, in the order of their numbers."""
        place = self.path or data_folder() / "beam"
        roots = [root for root in (place / "chats" / self.size, place / self.size) if root.is_dir()]
        root = roots[0] if roots else place
        folders = sorted((f for f in root.glob("*") if f.name.isdecimal() and f.is_dir()), key=lambda f: int(f.name))
        if not folders or not roots and place.name != self.size:
            fix = (f"run `memlab data fetch beam_{self.size.lower()}`, or point data.path at the folder chats of your "
                   "copy of the repository")
            raise instead(self.path, MemlabError(f"there are no chats of {self.size}", where=str(place), fix=fix))
        return folders


def _chat_file(folder: Path) -> Path:
    for name in CHATS:
        if (folder / name).is_file():
            return folder / name
    raise MemlabError("there is no chat.json", where=str(folder), fix="copy or fetch the chat again")


def _questions_file(folder: Path) -> Path:
    path = folder / "probing_questions" / "probing_questions.json"
    if not path.is_file():
        raise MemlabError("no such file", where=str(path), fix="copy or fetch the chat again")
    return path


def _questions(path: Path) -> Iterator[tuple[str, int, dict[str, Any], str]]:
    """Yield (ability, index within it, question, place) of a chat."""
    abilities = readers.whole(path, dict)
    for ability in abilities:
        if ability not in ABILITIES:
            raise MemlabError(f"'{ability}' is no ability of BEAM", where=str(path), fix="give the official file")
        for index, item in enumerate(readers.need(abilities, ability, list, str(path))):
            yield ability, index, item, f"{path}, field {ability}[{index}]"


def _batches(value: Any, where: str) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield (batch, place); a chat of 10M is a list of plans, each an object or a list that holds batches."""
    if type(value) is dict and "turns" in value:
        yield value, where
    elif type(value) is dict:
        for key, inner in value.items():
            if type(inner) in (list, dict):
                yield from _batches(inner, f"{where}.{key}")
    elif type(value) is list:
        for i, inner in enumerate(value):
            yield from _batches(inner, f"{where}[{i}]")
    else:
        raise MemlabError("expected a batch: an object with turns", where=where, fix="give the official file")


def _sessions(build: Builder, corpus: int, path: Path) -> tuple[Places, datetime | None]:
    """Add each segment that holds a message as a session; return the places of all ids, and the day after the last."""
    places: Places = defaultdict(list)
    session, said_on, last = 0, None, None
    for batch, where in _batches(readers.whole(path, list), f"{path}, field "):
        said_on = _anchor(batch, where) or said_on
        for i, segment in enumerate(readers.need(batch, "turns", list, where)):
            spot = f"{where}.turns[{i}]"
            if type(segment) is not list:
                raise MemlabError("expected a list of messages", where=spot, fix="give the official file")
            anchors = [_anchor(message, f"{spot}[{n}]") for n, message in enumerate(segment)]
            said_on = next(filter(None, anchors), said_on)
            last = max((day for day in (said_on, last, *anchors) if day), default=None)
            if not segment:
                continue
            build.session(corpus=corpus, session=session, said_on=said_on, name=f"{where.partition('field ')[2]}.{i}")
            for turn, message in enumerate(segment):
                _turn(build, corpus, session, turn, message, f"{spot}[{turn}]", places)
            session += 1
    if not session:
        raise MemlabError("there is no message", where=str(path), fix="give the official file")
    return places, None if last is None else last + timedelta(days=1)


def _turn(build: Builder, corpus: int, session: int, turn: int, message: dict[str, Any], where: str,
          places: Places) -> None:
    role = readers.choice(message, "role", ROLES, where)
    name = str(readers.need(message, "id", (int, str), where))
    places[name].append((session, turn))
    text = _PLAN.sub("", readers.need(message, "content", str, where))
    build.turn(corpus=corpus, session=session, turn=turn, role=role, speaker=None, text=text, name=name)


def _anchor(holder: Any, where: str) -> datetime | None:
    text = holder.get("time_anchor") if type(holder) is dict else None
    if not text:
        return None
    return readers.moment(readers.text_of(text, f"{where}, field time_anchor"), _DATE, f"{where}, field time_anchor",
                          "March-15-2024")


def _question(build: Builder, number: int, corpus: int, item: dict[str, Any], where: str, ability: str, places: Places,
              asked_on: datetime | None, name: str) -> None:
    text = readers.need(item, "question", str, where)
    cited = [places.get(id_, []) for id_ in cited_ids(item.get("source_chat_ids"), where)]
    evidence = sorted({spots[0] for spots in cited if len(spots) == 1})
    known = all(len(spots) <= 1 for spots in cited)
    build.missing_evidence(question=number, number=sum(not spots for spots in cited))
    build.question(question=number, corpus=corpus, text=text, asked_on=asked_on, name=name,
                   answer=_answer(item, where), category=ability, abstain=ability == "abstention",
                   scored=bool(evidence) and known)
    for session, turn in evidence:
        build.evidence(question=number, session=session, turn=turn)


def cited_ids(value: Any, where: str) -> list[str]:
    """Return the message ids of ``source_chat_ids``: a list, an object of lists, or null; each id once.

    >>> cited_ids({"first": [3, 5], "then": [[5, "7"]]}, "f.json")
    ['3', '5', '7']
    """
    if value is None:
        return []
    if type(value) in (int, str):
        return [str(value)]
    if type(value) not in (list, dict):
        raise MemlabError("expected a list or an object of message ids", where=f"{where}, field source_chat_ids")
    inner = value.values() if type(value) is dict else value
    return list(dict.fromkeys(id_ for one in inner for id_ in cited_ids(one, where)))


def _answer(item: dict[str, Any], where: str) -> str:
    key = next((key for key in ANSWERS if item.get(key)), None)
    if key is None:
        raise MemlabError(f"there is no answer: none of {', '.join(ANSWERS)}", where=where)
    value = item[key]
    return "; ".join(map(str, value)) if type(value) is list else str(value)
