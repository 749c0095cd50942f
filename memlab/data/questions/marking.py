"""Questions that a person marks, and their files: each change is on the disk before it is confirmed.

``questions.jsonl`` holds the questions that are kept, ``questions.skipped.jsonl`` in the same format those that are
not, and proposals that were kept in other words, so that they are not proposed again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from memlab.data.jsonl import MOST_OF_LINES, QUESTIONS, Evidence, QuestionLine, evidence_faults, read, read_questions
from memlab.data.questions.log import Log, TurnPlace
from memlab.data.questions.propose import ProposedQuestion
from memlab.support.clock import Clock
from memlab.support.errors import DiskFault, Faults, MemlabError
from memlab.support.files import atomic_write, disk_faults
from memlab.support.foreign import read_bytes

SKIPPED = "questions.skipped.jsonl"

Status = Literal["proposed", "kept", "skipped"]

Text = Annotated[str, Field(min_length=1, max_length=10_000, pattern=r"\S")]


class NewQuestion(BaseModel):
    """A person's own question, as the page sends it."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    corpus: str
    text: Text


class Change(BaseModel):
    """A question as the page sends it; ``revision`` is that of the question which was changed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    name: str
    revision: int
    status: Status
    text: Text
    answer: Annotated[str, Field(max_length=10_000)] = ""
    evidence: Annotated[list[Evidence], Field(max_length=1000)] = []


@dataclass(frozen=True)
class MarkedQuestion:
    """A question and whether it is kept; each change raises the revision.

    ``first`` is its text before it was edited, and ``source`` the turn that it was proposed from.
    """

    line: QuestionLine
    status: Status
    first: str
    source: TurnPlace | None = None
    revision: int = 0


class Conflict(Exception):
    """A change of something that was changed elsewhere since it was shown."""


class Marking:
    """The questions of a folder, by name.

    Args:
        folder: Where the files are.
        log: The sessions of the folder.
        proposed: Proposals; those that the files hold already are left out.
        questions: Lines of questions.jsonl.
    """

    def __init__(self, folder: Path, log: Log, proposed: Sequence[ProposedQuestion],
                 questions: Sequence[QuestionLine]) -> None:
        self.folder, self.log, self._proposed = folder, log, proposed
        self._lock = threading.RLock()
        self._disk = {name: self._bytes(name) for name in (QUESTIONS, SKIPPED)}
        self.entries: dict[str, MarkedQuestion] = {}
        self._load(questions)

    def _bytes(self, name: str) -> bytes | None:
        try:
            return read_bytes(self.folder / name, MOST_OF_LINES)
        except FileNotFoundError:
            return None
        except OSError as fault:
            raise MemlabError(f"it cannot be read ({fault.strerror or fault})",
                              where=str(self.folder / name)) from fault

    def _load(self, questions: Sequence[QuestionLine]) -> None:
        """Take the lines of both files, and the proposals that are in neither."""
        faults: list[str] = []
        skipped = [line for _, line in read_questions(self.folder / SKIPPED, QuestionLine, faults)
                   ] if self._disk[SKIPPED] else []
        if faults:
            raise Faults([*faults, f"{SKIPPED} holds what you skipped; without it all is proposed again"])
        entries = {line.question: MarkedQuestion(line, "kept", line.text) for line in questions}
        for line in skipped:
            entries.setdefault(line.question, MarkedQuestion(line, "skipped", line.text))
        known = {_words(entry.line.corpus, entry.line.text) for entry in entries.values()}
        for one in self._proposed:
            if _words(one.corpus, one.text) not in known:
                name = _free_name(entries)
                source = None if one.session is None or one.turn is None else TurnPlace(
                    self.log.number(one.corpus, one.session), one.turn)
                line = QuestionLine(question=name, corpus=one.corpus, text=one.text, answer=one.answer)
                entries[name] = MarkedQuestion(line, "proposed", one.text, source)
        self.entries = {name: replace(entry, revision=self.entries[name].revision + 1 if name in self.entries else 0)
                        for name, entry in entries.items()}

    def questions(self) -> list[QuestionLine]:
        """Return the lines of questions.jsonl."""
        return [entry.line for entry in self.entries.values() if entry.status == "kept"]

    def add(self, new: NewQuestion) -> MarkedQuestion:
        """Add a person's own question; raise MemlabError where the corpus is not there, or the file not writable."""
        with self._lock:
            if new.corpus not in self.log.corpora:
                raise MemlabError(f"there is no corpus '{new.corpus}'")
            line = QuestionLine(question=_free_name(self.entries), corpus=new.corpus, text=" ".join(new.text.split()))
            return self._store(line.question, MarkedQuestion(line, "kept", line.text))

    def change(self, change: Change) -> MarkedQuestion:
        """Change a question, and write the files.

        Raises:
            Conflict: The question, or a file, was changed elsewhere.
            MemlabError: There is no such question or evidence, or a file cannot be written; nothing is changed.
        """
        with self._lock:
            entry = self.entries.get(change.name)
            if entry is None:
                raise MemlabError(f"there is no question '{change.name}'", fix="load the page again")
            if entry.revision != change.revision:
                raise Conflict("The question was changed in another window. Its newer form is shown; your last change "
                               "is not saved.")
            line = entry.line.model_copy(update={
                "text": " ".join(change.text.split()), "answer": change.answer.strip() or None,
                "evidence": list({(one.session, one.turn): one for one in change.evidence}.values())})
            self._check(line)
            return self._store(change.name, replace(entry, line=line, status=change.status,
                                                    revision=entry.revision + 1))

    def _check(self, line: QuestionLine) -> None:
        """Raise MemlabError for evidence that is not in the log, or later than the question."""
        clock, cited = Clock(), {one.session for one in line.evidence}
        asked_on = None if line.asked_on is None else clock.local(line.asked_on, "asked_on")
        extents = {one.session: (None if one.said_on is None or one.session not in cited else clock.local(
            one.said_on, "said_on"), len(one.turns)) for one in self.log.sessions if one.corpus == line.corpus}
        for fault in evidence_faults(line, asked_on, extents, line.question, "session", "turns"):
            raise MemlabError(fault)

    def _store(self, name: str, entry: MarkedQuestion) -> MarkedQuestion:
        """Write the files as they are with an entry, then take it."""
        if any(self._bytes(file) != content for file, content in self._disk.items()):
            content = read(self.folder)
            if content.faults:
                raise Faults(content.faults)
            self._disk = {file: self._bytes(file) for file in self._disk}
            self._load(content.questions)
            raise Conflict(f"The files in {self.folder} were changed by another program. What they hold now is shown; "
                           "your last change is not saved.")
        entries = {**self.entries, name: entry}
        kept = [one.line for one in entries.values() if one.status == "kept"]
        skipped = [one.line for one in entries.values() if one.status == "skipped"]
        skipped += [QuestionLine(question=f"{one.line.question} as proposed", corpus=one.line.corpus, text=one.first)
                    for one in entries.values() if one.status == "kept" and one.source and one.first != one.line.text]
        writes: list[Callable[[], None]] = [lambda: self._write(QUESTIONS, kept), lambda: self._write(SKIPPED, skipped)]
        for write in reversed(writes) if entry.status == "skipped" else writes:  # a question is never in no file
            write()
        self.entries = entries
        return entry

    def _write(self, name: str, lines: Iterable[QuestionLine]) -> None:
        """Write a file; none where there is no line, since data=custom refuses an empty one."""
        path = self.folder / name
        rows = [line.model_dump(exclude_defaults=True) for line in lines]
        content = "".join(json.dumps(row, ensure_ascii=False, default=date.isoformat) + "\n" for row in rows).encode()
        if content == (self._disk[name] or b""):
            return
        try:
            if content:
                atomic_write(path, content)
            else:
                with disk_faults(path):
                    path.unlink(missing_ok=True)
        except DiskFault as fault:
            raise MemlabError(f"{fault.what}; your last change is not saved", where=str(path), fix=fault.fix) from fault
        self._disk[name] = content or None


def _words(corpus: str, text: str) -> tuple[str, str]:
    return corpus, " ".join(text.casefold().split())


def _free_name(entries: Iterable[str]) -> str:
    """Return a name that no question has: q1, q2, ..."""
    used = set(entries)
    return next(name for n in range(1, len(used) + 2) if (name := f"q{n}") not in used)
