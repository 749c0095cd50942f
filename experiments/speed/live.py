"""Texts, vectors and measures that the scripts on live memories share."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from memlab.data.synthetic.dataset import Synthetic
from memlab.memory.memory import Session
from memlab.models.protocols import Floats, Ints, Role


@cache
def vectors_of_words(size: int) -> Floats:
    """Return random unit vectors (16,384, size); a word's digest says which is its own."""
    vectors = np.random.default_rng(0).standard_normal((1 << 14, size), np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@dataclass(frozen=True)
class Words:
    """An encoder without weights: each word has a random unit vector, and a text's vector is their sum."""

    size: int = 384
    query_tokens: int = 12

    def identity(self) -> dict[str, Any]:
        return {"is": "random words", "size": self.size}

    def token_identity(self, role: Role) -> dict[str, Any]:  # noqa: ARG002
        return self.identity()

    def dim(self) -> int:
        return self.size

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:  # noqa: ARG002
        return np.zeros(len(texts), bool)

    def token_ids(self, texts: Sequence[str]) -> list[Ints]:
        return [np.array([zlib.crc32(word.encode()) % (1 << 14) for word in text.split()], np.int64) for text in texts]

    def token_vectors(self, texts: Sequence[str], role: Role  # noqa: ARG002
                      ) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        ids = self.token_ids(texts)
        yield np.arange(len(texts)), ids, [vectors_of_words(self.size)[some] for some in ids]

    def encode(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, Floats]]:
        sums = np.stack([some.sum(axis=0) for _, _, rows in self.token_vectors(texts, role) for some in rows])
        yield np.arange(len(texts)), sums / np.linalg.norm(sums, axis=1, keepdims=True)


class Drawing:
    """Texts drawn by a Zipf law from the vocabulary of the generated lives, and sessions of users who take turns."""

    def __init__(self, turns: int, words: int, users: int = 1) -> None:
        self._turns, self._length, self._users = turns, words, users
        texts = Synthetic().load()["texts"]["text"].str.to_lowercase().str.extract_all(r"\w\w+").explode()
        self._words = np.array(sorted(texts.drop_nulls().unique()))
        share = 1 / np.arange(1, len(self._words) + 1)
        self._rng, self._share = np.random.default_rng(0), share / share.sum()

    def text(self, words: int = 8) -> str:
        """Draw a text: a question, unless its length is given."""
        return " ".join(self._rng.choice(self._words, words, p=self._share))

    def session(self, n: int) -> Session:
        """Draw the n-th session: three hours after the one before, of the next user."""
        turns = [(("user", "assistant")[t % 2], self.text(self._length)) for t in range(self._turns)]
        return Session(datetime(2020, 1, 1) + timedelta(hours=3 * n), turns, user=f"user {n % self._users}")


class Watch:
    """Seconds since it was made, by the clock and by processor."""

    def __init__(self) -> None:
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def clock(self) -> float:
        return time.perf_counter() - self._clock

    def processor(self) -> float:
        return time.process_time() - self._processor

    def __str__(self) -> str:
        return f"{self.clock():.2f} s, processor {self.processor():.2f} s"


def resident() -> float:
    """Return the resident memory of this process in MB."""
    return psutil.Process().memory_info().rss / 1e6


def size(folder: Path | str) -> float:
    """Return the MB of all files below a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
