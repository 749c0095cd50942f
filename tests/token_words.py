"""A matcher without weights: each word has a fixed unit vector of 16 numbers, and an id."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from memlab.models.protocols import Floats, Ints, Role

DIM = 16


@dataclass(frozen=True)
class TokenWords:
    """Counts the texts that it encodes in ``asked``."""

    query_tokens: int = 12
    name: str = "words"

    asked: ClassVar[list[str]] = []

    def identity(self) -> dict[str, Any]:
        return {"is": "TokenWords"}

    def token_identity(self, role: Role) -> dict[str, Any]:
        return {"is": "TokenWords"}

    def token_ids(self, texts: Sequence[str]) -> list[Ints]:
        return [np.array([zlib.crc32(word.encode()) % 9973 for word in text.lower().split()], np.int64)
                for text in texts]

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        for i, ids in enumerate(self.token_ids(texts)):
            self.asked.append(texts[i])
            rows = np.stack([np.random.default_rng(int(n)).standard_normal(DIM) for n in ids]).astype(np.float32)
            yield np.array([i]), [ids], [rows / np.linalg.norm(rows, axis=1, keepdims=True)]
