"""Memories and questions for late interaction, and a matcher whose vectors are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame

DAY = datetime(2023, 5, 1)


class FixedVectors:
    """A matcher by one vector for each word."""

    query_tokens = 4

    def __init__(self, words: Sequence[str], vectors: Floats) -> None:
        self.words, self.vectors = words, vectors

    def identity(self) -> dict[str, Any]:
        return {"is": type(self).__name__}

    def token_ids(self, texts: Sequence[str]) -> list[Ints]:
        return [np.array([self.words.index(word) for word in text.split()], np.int64) for text in texts]

    def token_identity(self, role: Role) -> dict[str, Any]:
        return self.identity()

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        rows = self.token_ids(texts)
        yield np.arange(len(texts)), rows, [self.vectors[ids] for ids in rows]


def world(memories: Sequence[tuple[int, str, int]], questions: Sequence[tuple[str, int | None]]) -> Tables:
    """Memories (session, key, day on which it was said) of one corpus, and questions (text, day of asking)."""
    n, m = len(memories), len(questions)
    keys = [text_hash(key) for _, key, _ in memories]
    return Tables(
        texts=texts_frame([*(key for _, key, _ in memories), *(text for text, _ in questions)]),
        memories=frame("memories", {
            "memory": list(range(n)), "corpus": [0] * n, "session": [session for session, _, _ in memories],
            "turns": [[0]] * n, "kind": ["turn"] * n, "key_id": keys, "value_id": keys,
            "said_on": [DAY + timedelta(day) for _, _, day in memories]}),
        questions=frame("questions", {
            "question": list(range(m)), "corpus": [0] * m, "text_id": [text_hash(text) for text, _ in questions],
            "asked_on": [None if day is None else DAY + timedelta(day) for _, day in questions]}),
        queries=frame("queries", {
            "query": list(range(m)), "question": list(range(m)), "kind": ["original"] * m, "weight": [1.0] * m,
            "text_id": [text_hash(text) for text, _ in questions]}))
