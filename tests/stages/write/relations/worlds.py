"""Memories told over days, and an embedder whose cosines are known, for the tests of relations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame
from memlab.store import Store

DAY = datetime(2023, 5, 1, 9, 30)


@dataclass(frozen=True)
class Angles:
    """A text is a direction in the plane, in degrees; texts that are not named lie at right angles to each other."""

    degrees: dict[str, float] = field(default_factory=dict)

    def identity(self) -> dict[str, Any]:
        return {"is": "angles", "degrees": self.degrees}

    def dim(self) -> int:
        return 258

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        yield np.arange(len(texts)), np.stack([self.vector(t) for t in texts])

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:
        return np.zeros(len(texts), bool)

    def vector(self, text: str) -> Floats:
        out = np.zeros(self.dim(), np.float32)
        if text in self.degrees:
            out[:2] = np.cos(np.radians(self.degrees[text])), np.sin(np.radians(self.degrees[text]))
        else:
            out[2 + int(text_hash(text)[:2], 16)] = 1.0
        return out


def told(*rows: tuple[int, int | None, str], asked: int = 500, **columns: list[Any]) -> Tables:
    """One corpus; a row is (session, day on which it was said or None, text) and makes a turn and its memory.

    Memories are numbered from 0; one question is asked on a day.
    """
    days = {session: None if day is None else DAY + timedelta(days=day) for session, day, _ in rows}
    sessions = [session for session, _, _ in rows]
    turn = [sessions[:i].count(s) for i, s in enumerate(sessions)]
    names = [text_hash(text) for _, _, text in rows]
    n = len(rows)
    return Tables(
        texts=texts_frame([text for _, _, text in rows] + ["Why?"]),
        sessions=frame("sessions", {"corpus": [0] * len(days), "session": list(days), "said_on": list(days.values())}),
        turns=frame("turns", {"corpus": [0] * n, "session": sessions, "turn": turn, "role": ["user"] * n,
                              "speaker": [None] * n, "text_id": names}),
        questions=frame("questions", {"question": [0], "corpus": [0], "text_id": [text_hash("Why?")],
                                      "asked_on": [DAY + timedelta(days=asked)]}),
        edges=frame("edges", {"source": [], "target": [], "kind": [], "confidence": []}),
        memories=frame("memories", {
            "memory": range(n), "corpus": [0] * n, "session": sessions, "turns": [[t] for t in turn],
            "kind": ["turn"] * n, "source": ["conversation"] * n, "key_id": names, "value_id": names,
            "said_on": [days[s] for s in sessions], **columns}))


def done(stage: Any, tables: Tables, store: Store) -> Tables:
    """The tables after a stage that was handed only what it reads."""
    made = stage.run(tables.only(stage.reads), store)
    assert set(made) == set(stage.writes)
    return tables.updated(made)


def edges(tables: Tables, *kinds: str) -> list[tuple[int, int, str, float]]:
    """(source, target, kind, confidence) of these kinds, in order."""
    return sorted(row for row in tables["edges"].iter_rows() if row[2] in kinds or not kinds)
