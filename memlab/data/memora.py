"""Memora: weeks of ten people with an assistant, and questions about what of it still holds.

Apache-2.0, github.com/geniesinc/Memora, folder ``data/weekly`` (``monthly`` and ``quarterly`` have the same form).
Reads a folder with one folder for each person.

A question names the sessions that it needs (``memory_evidence``) and those that must not be used any more
(``forgetting_evidence``). The latter are mostly the sessions in which a person takes something back, not those in which
it was told: ``outdated=named`` follows the file, ``outdated=told`` takes the earlier sessions about the same item. A
session that a question needs is never outdated for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Literal

from memlab.data import readers
from memlab.data.benchmarks import Builder
from memlab.data.several import SeveralFiles
from memlab.pipeline.stage import LocalPath, stage
from memlab.pipeline.tables import Tables

_ROLES = {"user_agent": "user", "ai_agent": "assistant"}

_Sessions = dict[int, tuple[int, dict[str, Any], list[int | None]]]
"""The file's number of a session -> its number in the corpus, its record, and its turns that tell a fact."""


@stage
class Memora(SeveralFiles):
    """A person is a corpus; evidence are the marked turns (``share_memory``) of a session."""

    benchmark: ClassVar = "memora"
    pattern: ClassVar = "*/evaluation_questions_*.json"

    path: LocalPath | None = None  # folder with a folder for each person; null = $MEMLAB_HOME/data/memora
    outdated: Literal["named", "told"] = "named"  # sessions that the file names, or earlier ones on the same item

    def load(self) -> Tables:
        """Read the files; raise MemlabError naming file and field where one is not as expected."""
        build, number = Builder(), 0
        for corpus, path in enumerate(self._files()):
            person = path.parent.name
            build.corpus(corpus=corpus, name=person)
            sessions = _sessions(build, corpus, person, path.parent / "conversations")
            kinds = readers.need(readers.whole(path, dict), "questions", dict, str(path))
            for kind in kinds:
                for at, item in enumerate(readers.need(kinds, kind, list, f"{path}, field questions")):
                    where = f"{path}, field questions.{kind}[{at}]"
                    _question(build, number, corpus, kind, item, sessions, self.outdated == "told", where)
                    number += 1
        return self.cut(build.tables(), build.missing)

    def identity(self) -> dict[str, Any]:
        """Return the checksums of the files and the options."""
        files = {f"{path.parent.name}/{one.name}": readers.sha256(one) for path in self._files()
                 for one in sorted(path.parent.glob("conversations/*.json"))}
        return {**super().identity(), "sessions": files, "outdated": self.outdated}


def _sessions(build: Builder, corpus: int, person: str, folder: Path) -> _Sessions:
    """Add the sessions in the order of their numbers, and their turns."""
    sessions: _Sessions = {}
    for number, path in enumerate(sorted(folder.glob("*.json"))):
        record, where = readers.whole(path, dict), str(path)
        day = readers.need(record, "date", str, where)
        build.session(corpus=corpus, session=number, name=f"{person}:{path.stem}",
                      said_on=readers.moment(day, "%Y-%m-%d", f"{where}, field date", "2025-06-07"))
        telling: list[int | None] = []
        for at, turn in enumerate(readers.need(record, "conversation", list, where)):
            there = f"{where}, field conversation[{at}]"
            role = _ROLES[readers.choice(turn, "speaker", _ROLES, there)]
            build.turn(corpus=corpus, session=number, turn=at, role=role, speaker=None,
                       text=readers.need(turn, "message", str, there), name=f"{person}:{path.stem}:{at}")
            telling += [at] if turn.get("share_memory") is True else []
        sessions[readers.need(record, "session_id", int, where)] = number, record, telling
    return sessions


def _session_ids(value: Any) -> Iterator[int]:
    """Yield the sessions that nested evidence names: ``session_id`` of each item, and lists ``session_history``."""
    pending = [value]
    while pending:
        one = pending.pop()
        if type(one) is dict:
            history = one.get("session_history")
            named = [one.get("session_id"), *(history if type(history) is list else ())]
            yield from (number for number in named if type(number) is int)
        pending += one.values() if type(one) is dict else one if type(one) is list else ()


def _question(build: Builder, number: int, corpus: int, kind: str, item: Any, sessions: _Sessions, told: bool,
              where: str) -> None:
    cited = set(_session_ids(readers.need(item, "memory_evidence", dict, where)))
    needed, past = cited & sessions.keys(), set(_session_ids(item.get("forgetting_evidence"))) & sessions.keys()
    day = readers.need(item, "question_date", str, where)
    asked_on: datetime = readers.moment(day, "%Y-%m-%d", f"{where}, field question_date", "2025-06-07")
    build.question(question=number, corpus=corpus, text=readers.need(item, "question", str, where), asked_on=asked_on,
                   name=readers.need(item, "question_id", str, where), answer=None, category=kind, abstain=False,
                   scored=bool(needed))
    build.missing_evidence(question=number, number=len(cited - needed))
    outdated = {other for one in past for other in _earlier(one, sessions)} if told else past
    for held, add in ((needed, build.evidence), (outdated - needed, build.outdated)):
        for session, _, telling in (sessions[one] for one in sorted(held)):
            for turn in telling or [None]:
                add(question=number, session=session, turn=turn)


def _earlier(one: int, sessions: _Sessions) -> Iterator[int]:
    """Yield the earlier sessions on the item that a session takes back or replaces."""
    place, record, _ = sessions[one]
    details = record.get("operation_details")
    taken = details.get("old_item", details.get("item")) if type(details) is dict else None
    for other, (number, its, _) in sessions.items():
        said = its.get("operation_details")
        if taken is not None and number < place and type(said) is dict and said.get("item") == taken:
            yield other
