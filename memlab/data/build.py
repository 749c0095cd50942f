"""Builder of a data set's tables: sessions, questions and gold are added row by row."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import polars as pl

from memlab.runtime.clock import Clock
from memlab.tables import SCHEMAS, Tables, frame, text_hash

ROWS = 1 << 16
"""Rows of a table that are kept as Python objects, at some four times the memory of a frame."""

_TABLES = ("sessions", "turns", "questions", "gold", "evidence", "ids")


class Builder:
    """Column lists to which rows are added; each distinct text is stored once.

    clock: tells the times of sessions and questions; None tells those with a UTC offset in UTC. Times with and without
    an offset are not mixed: the first of the other kind raises MemlabError.

    >>> b = Builder()
    >>> b.session(corpus=0, session=0, said_on=None, name="s1")
    >>> b.turn(corpus=0, session=0, turn=0, role="user", speaker=None, text="hello", name="s1_1")
    >>> b.tables()["turns"].height
    1
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or Clock()
        self._ids: dict[str, str] = {}
        self._columns: dict[str, dict[str, list[Any]]] = {name: {c: [] for c in SCHEMAS[name]} for name in _TABLES}
        self._frames: dict[str, list[pl.DataFrame]] = {name: [] for name in _TABLES}
        self.missing: dict[int, int] = {}
        """Question -> pieces of evidence that the file cites and the corpus does not hold."""

    def corpus(self, *, corpus: int, name: str) -> None:
        """Name a corpus (haystack or conversation)."""
        self._add("ids", kind="corpus", name=name, corpus=corpus)

    def session(self, *, corpus: int, session: int, said_on: date | datetime | None, name: str) -> None:
        """Add a session."""
        self._add("sessions", corpus=corpus, session=session,
                  said_on=self._local(said_on, "said_on of session", name or session))
        self._add("ids", kind="session", name=name, corpus=corpus, session=session)

    def turn(self, *, corpus: int, session: int, turn: int, role: str, speaker: str | None, text: str,
             name: str) -> None:
        """Add a turn."""
        self._add("turns", corpus=corpus, session=session, turn=turn, role=role, speaker=speaker,
                  text_id=self._text_id(text))
        self._add("ids", kind="turn", name=name, corpus=corpus, session=session, turn=turn)

    def question(self, *, question: int, corpus: int, text: str, asked_on: date | datetime | None, name: str,
                 answer: str | None, category: str, abstain: bool, scored: bool,
                 label_error: str | None = None) -> None:
        """Add a question with its gold."""
        self._add("questions", question=question, corpus=corpus, text_id=self._text_id(text),
                  asked_on=self._local(asked_on, "asked_on of question", name))
        self._add("gold", question=question, answer=answer, category=category, abstain=abstain, scored=scored,
                  label_error=label_error)
        self._add("ids", kind="question", name=name, corpus=corpus, question=question)

    def evidence(self, *, question: int, session: int, turn: int | None) -> None:
        """Add one piece of evidence; turn is null where only the session is known."""
        self._add("evidence", question=question, session=session, turn=turn)

    def missing_evidence(self, *, question: int, number: int) -> None:
        """Count pieces of evidence that the file cites and the corpus does not hold: no metric can ask for them."""
        if number:
            self.missing[question] = self.missing.get(question, 0) + number

    def tables(self) -> Tables:
        """Return texts, sessions, turns, questions, gold, evidence and ids."""
        texts = frame("texts", {"text_id": list(self._ids.values()), "text": list(self._ids)})
        return Tables(texts=texts, **{name: pl.concat([*self._frames[name], frame(name, columns)])
                                      for name, columns in self._columns.items()})

    def _local(self, value: date | datetime | None, what: str, name: str | int) -> datetime | None:
        return None if value is None else self._clock.local(value, f"{what} {name}")

    def _text_id(self, text: str) -> str:
        if text not in self._ids:
            self._ids[text] = text_hash(text)
        return self._ids[text]

    def _add(self, table: str, **row: Any) -> None:
        columns = self._columns[table]
        for column, values in columns.items():
            values.append(row.get(column))
        if len(values) == ROWS:
            self._frames[table].append(frame(table, columns))
            self._columns[table] = {column: [] for column in columns}
