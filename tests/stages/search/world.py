"""Small worlds of memories and questions, and models that need no weights."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import Tables, frame, text_hash, texts_frame

DAY = datetime(2023, 5, 1)


@dataclass(frozen=True)
class WordEmbedder:
    """A text's vector is the normalised sum of its words' fixed random vectors."""

    size: int = 16

    def identity(self) -> dict[str, Any]:
        return {"is": "words", "size": self.size}

    def dim(self) -> int:
        return self.size

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        for at in range(0, len(texts), 64):
            yield np.arange(at, min(at + 64, len(texts))), np.stack([self.vector(t) for t in texts[at:at + 64]])

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:
        return np.zeros(len(texts), bool)

    def vector(self, text: str) -> Floats:
        words = text.split() or [""]
        seeds = [int.from_bytes(hashlib.blake2b(w.encode(), digest_size=8).digest()) for w in words]
        total = sum(np.random.default_rng(s).standard_normal(self.size) for s in seeds)
        return (total / np.linalg.norm(total)).astype(np.float32)


@dataclass(frozen=True)
class Overlap:
    """A pair's score is the share of the query's words that the passage holds."""

    def identity(self) -> dict[str, Any]:
        return {"is": "overlap"}

    def score(self, queries: Sequence[str], passages: Sequence[str], pairs: Ints) -> Iterator[tuple[Ints, Floats]]:
        for i, (q, p) in enumerate(pairs):
            yield np.array([i]), np.array([self.of(queries[q], passages[p])], np.float32)

    @staticmethod
    def of(query: str, passage: str) -> float:
        wanted = query.split()
        return sum(w in passage.split() for w in wanted) / max(1, len(wanted))


def day(n: int | None, hour: int = 0) -> datetime | None:
    """The n-th day, or no date."""
    return None if n is None else DAY + timedelta(days=n, hours=hour)


def world(memories: Sequence[tuple[Any, ...]], questions: Sequence[tuple[Any, ...]]) -> Tables:
    """Make tables of memories (corpus, text, said_on[, kind]) and questions (corpus, text, asked_on).

    Memory ids run backwards, so that neither row nor date order can pass for id order.
    """
    n, q = len(memories), len(questions)
    keys, asks = [text_hash(m[1]) for m in memories], [text_hash(a[1]) for a in questions]
    return Tables(
        texts=texts_frame([*(m[1] for m in memories), *(a[1] for a in questions)]),
        memories=frame("memories", {
            "memory": [1000 + n - i for i in range(n)], "corpus": [m[0] for m in memories], "session": [0] * n,
            "turns": [[0]] * n, "kind": [m[3] if len(m) > 3 else "turn" for m in memories], "key_id": keys,
            "value_id": keys, "said_on": [m[2] for m in memories]}),
        questions=frame("questions", {
            "question": list(range(q)), "corpus": [a[0] for a in questions], "text_id": asks,
            "asked_on": [a[2] for a in questions]}),
        queries=frame("queries", {
            "query": [10 + i for i in range(q)], "question": list(range(q)), "kind": ["original"] * q, "text_id": asks,
            "weight": [1.0] * q}),
    )
