"""Top-k by score, and the table ``hits``: one order for all lanes, so that ties never depend on the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Ints
from memlab.tables import DIGITS, SCHEMAS

Scores = NDArray[np.floating]

HALF_DIGITS = {"fp16": 3, "bf16": 2}
"""Decimals of scores of half-precision models, whose vectors depend on the batch: MiniLM's cosines move up to 4e-4 in
fp16 and 2e-3 in bf16. On LoCoMo dev, two decimals in place of six move session any@1 and all@5, turn all@10 and nDCG@10
of the default ranking by .003 at most.
"""

MATCH = 10.0**-DIGITS
"""The lowest score above 0 that a table holds: the floor of searches in which a text of score 0 is no hit."""


def digits_of(model: Any) -> int:
    """Return to how many decimals the scores of a model, or of the encoder inside it, are rounded."""
    identity = model.identity()
    formats = (identity.get("dtype"), identity.get("products"), identity.get("embedder", {}).get("dtype"))
    return min(HALF_DIGITS.get(one, DIGITS) for one in formats)


def topk_candidates(scores: Scores, depth: int, floor: float = -np.inf, digits: int = DIGITS) -> Ints:
    """Return the positions of all scores that could be among the best ``depth`` once rounded, ties included.

    Scores below ``floor`` are left out.

    >>> topk_candidates(np.array([.5, .9, .9, .1]), 1).tolist()
    [1, 2]
    """
    above = np.flatnonzero(scores >= floor)
    if depth >= len(above):
        return above
    last = np.partition(scores[above], len(above) - depth)[len(above) - depth]
    return above[scores[above] >= last - 10.0**-digits]


def topk(scores: Scores, ids: Ints, depth: int, digits: int = DIGITS) -> Ints:
    """Return the positions of the best ``depth`` scores: by rounded score, descending, then by id, ascending.

    scores: (n,); ids: (n,), distinct; returns (min(depth, n),).

    >>> topk(np.array([.5, .9, .9]), np.array([1, 3, 2]), 2).tolist()
    [2, 1]
    """
    candidates = topk_candidates(scores, depth, digits=digits)
    rounded = np.round(scores[candidates].astype(np.float64), digits)
    return candidates[np.lexsort((ids[candidates], -rounded))[:depth]]


class HitsBuilder:
    """Collects the ranked memories of one query after the other into a ``hits`` table.

    floor: the lowest score of a hit; None for no limit. digits: decimals to which scores are rounded.
    """

    def __init__(self, floor: float | None = None, digits: int = DIGITS) -> None:
        self._floor, self._digits = floor, digits
        self._lanes: list[str] = []
        self._queries: list[int] = []
        self._memories: list[Ints] = []
        self._scores: list[Scores] = []

    def add(self, lane: str, query: int, memories: Ints, scores: Scores, depth: int) -> None:
        """Rank the memories (n,) of one query in one lane by their scores (n,), and keep the best ``depth``."""
        if self._floor is not None:
            high = np.round(scores.astype(np.float64), self._digits) >= self._floor
            memories, scores = memories[high], scores[high]
        order = topk(scores, memories, depth, self._digits)
        if len(order):
            self._lanes.append(lane)
            self._queries.append(query)
            self._memories.append(memories[order])
            self._scores.append(np.round(scores[order].astype(np.float64), self._digits))

    def frame(self) -> pl.DataFrame:
        """Return the ``hits`` table, queries in the order in which they were added, by rank; scores are rounded."""
        if not self._lanes:
            return pl.DataFrame(schema=SCHEMAS["hits"])
        counts = np.array([len(memories) for memories in self._memories])
        names = list(dict.fromkeys(self._lanes))
        codes = np.repeat([names.index(lane) for lane in self._lanes], counts)
        return pl.DataFrame(
            {
                "query": np.repeat(self._queries, counts),
                "lane": pl.Series(names).gather(codes),
                "memory": np.concatenate(self._memories),
                "score": np.concatenate(self._scores),
                "rank": np.concatenate([np.arange(1, n + 1) for n in counts]),
            },
            schema=SCHEMAS["hits"],
        )
