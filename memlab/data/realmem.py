"""RealMem: projects of ten people with an assistant over half a year, and questions in the middle of their chats.

"RealMem: Benchmarking LLMs in Real-World Memory-Driven Interaction" (2026, arXiv 2601.06966), Apache-2.0,
github.com/AvatarMemory/RealMemBench. Reads the folder of ``NAME_dialogues_256k.json``, or one of them.

A question is a message of a user that calls for earlier sessions. It stands inside the stream that it is about, and is
therefore dated the day before: it sees the sessions of earlier days alone, and neither its own session nor itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar

from memlab.data import readers
from memlab.data.benchmarks import Builder, data_folder
from memlab.data.several import SeveralFiles
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables
from memlab.support.errors import MemlabError

_DAY = timedelta(days=1)
_FIRST = datetime(1, 1, 2)  # the first day that has a day before it
_ROLES = {"User": "user", "Assistant": "assistant"}


@dataclass(frozen=True)
class _Session:
    """A session by its number in the corpus; turns and memories are those of the file."""

    number: int
    uuid: str
    day: datetime
    turns: list[dict[str, Any]]
    memories: list[dict[str, Any]]
    where: str


@stage
class RealMem(SeveralFiles):
    """A person is a corpus; a question is (person, query_id), and what it needs stands in the assistant's next message.
    """

    benchmark: ClassVar = "realmem"
    pattern: ClassVar = "*_dialogues_256k.json"

    # folder of NAME_dialogues_256k.json, or one file, .gz and .xz too; null = $MEMLAB_HOME/data/realmem
    path: LocalPath | None = None

    def load(self) -> Tables:
        """Read the files; raise MemlabError naming file and field where one is not as expected."""
        build, number = Builder(), 0
        for corpus, path in enumerate(self._files()):
            person = path.name.partition("_dialogues_")[0]
            build.corpus(corpus=corpus, name=person)
            dialogues = readers.need(readers.whole(path, dict), "dialogues", list, str(path))
            sessions = _sessions(build, corpus, dialogues, str(path))
            by_uuid = {session.uuid: session for session in sessions}
            for session, turn in _queries(sessions):
                _question(build, number, corpus, session, turn, by_uuid, person)
                number += 1
        if not number:
            raise MemlabError("there is no question: no message has is_query", where=str(self.path or data_folder()),
                              fix="give the official files")
        return self.cut(build.tables(), build.missing)

    def notes(self) -> list[str]:
        """Return what a reader of the results must know."""
        return ["RealMem asks in the middle of a chat. A question is dated the day before, so that it sees sessions of "
                "earlier days alone, and neither its own session nor itself: words such as 'yesterday' are counted "
                "from there, and a session of the question's own day is no evidence.", *super().notes()]

def _sessions(build: Builder, corpus: int, dialogues: list[Any], where: str) -> list[_Session]:
    """Add the sessions in the order of their days, and their turns; return them."""
    dated = []
    for at, item in enumerate(dialogues):
        spot = f"{where}, field dialogues[{at}]"
        date = readers.need(item, "current_time", str, spot)
        day = readers.moment(date.partition(" ")[0], "%Y-%m-%d", f"{spot}, field current_time", "2025-12-28 (Sunday)")
        dated.append((day, item, spot))
    sessions = []
    for number, (day, item, spot) in enumerate(sorted(dated, key=lambda one: one[0])):
        uuid, turns = readers.need(item, "session_uuid", str, spot), readers.need(item, "dialogue_turns", list, spot)
        build.session(corpus=corpus, session=number, said_on=day, name=uuid)
        for at, turn in enumerate(turns):
            there = f"{spot}, field dialogue_turns[{at}]"
            role = _ROLES[readers.choice(turn, "speaker", _ROLES, there)]
            build.turn(corpus=corpus, session=number, turn=at, role=role, speaker=None,
                       text=readers.need(turn, "content", str, there), name=f"{uuid}:{at}")
        sessions.append(_Session(number, uuid, day, turns, [*_memories(item.get("extracted_memory"))], spot))
    return sessions


def _memories(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects with a content: ``extracted_memory`` is a list of them, or an object that holds them."""
    pending = [value]
    while pending:
        one = pending.pop()
        if type(one) is dict and "content" in one:
            yield one
        elif type(one) in (dict, list):
            pending += one.values() if type(one) is dict else one


def _queries(sessions: list[_Session]) -> Iterator[tuple[_Session, int]]:
    """Yield each user's message that is a question: its session and its number there."""
    for session in sessions:
        for at, turn in enumerate(session.turns):
            if "is_query" in turn and turn["speaker"] == "User" and readers.need(
                    turn, "is_query", bool, f"{session.where}, field dialogue_turns[{at}]"):
                yield session, at


def _question(build: Builder, number: int, corpus: int, session: _Session, at: int, by_uuid: dict[str, _Session],
              person: str) -> None:
    turn, where = session.turns[at], f"{session.where}, field dialogue_turns[{at}]"
    after = next((n for n, t in enumerate(session.turns) if n > at and t["speaker"] == "Assistant"), None)
    reply = {} if after is None else session.turns[after]
    there = f"{session.where}, field dialogue_turns[{after}]"
    cited = set(readers.texts(reply, "memory_session_uuids", there)) if reply.get("memory_session_uuids") else set()
    visible = [other for uuid, other in by_uuid.items() if uuid in cited and other.day < session.day]
    used = readers.need(reply, "memory_used", list, there) if reply.get("memory_used") else []
    kind = readers.text_of(turn.get("category_name") or "other", f"{where}, field category_name")
    build.question(question=number, corpus=corpus, text=turn["content"], asked_on=max(session.day, _FIRST) - _DAY,
                   name=f"{person}:{turn.get('query_id') or number}", answer=reply.get("content", ""),
                   category=kind.strip().lower().replace(" ", "-"), abstain=False, scored=bool(visible))
    build.missing_evidence(question=number, number=len(cited - by_uuid.keys()))
    for other in visible:
        for source in _source_turns(other, used, there) or [None]:
            build.evidence(question=number, session=other.number, turn=source)


def _source_turns(session: _Session, used: list[Any], where: str) -> list[int | None]:
    """Return the turns of a session from which the memories that were used were taken.

    A memory that was used equals one of the session's by its content, and that one holds a copy of its turn; the number
    of the turn beside it counts from 0 in some records and from 1 in others.
    """
    contents = [one["content"] for one in used
                if readers.need(one, "session_uuid", str, f"{where}, field memory_used") == session.uuid
                and "content" in one]
    copies = [memory.get("source_content_snapshot") for memory in session.memories if memory["content"] in contents]
    return [at for at, turn in enumerate(session.turns) if turn["content"] in copies]
