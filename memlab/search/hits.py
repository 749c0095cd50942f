"""Scores to the table ``hits``: one order for every lane, so that ties never depend on the machine."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Ints
from memlab.tables import DIGITS, SCHEMAS

Scores = NDArray[np.floating]


def contenders(scores: Scores, depth: int, floor: float = -np.inf) -> Ints:
    """Return the positions of all scores that could be among the best ``depth`` once rounded, ties included.

    Scores below ``floor`` are known not to be.

    >>> contenders(np.array([.5, .9, .9, .1]), 1).tolist()
    [1, 2]
    """
    above = np.flatnonzero(scores >= floor)
    if depth >= len(above):
        return above
    edge = np.partition(scores[above], len(above) - depth)[len(above) - depth]
    return above[scores[above] >= edge - 10.0**-DIGITS]  # a whole step below the edge is out


def best(scores: Scores, ids: Ints, depth: int) -> Ints:
    """Return the positions of the best ``depth`` scores: by rounded score, descending, then by id, ascending.

    scores: (n,); ids: (n,), distinct; returns (min(depth, n),).

    >>> best(np.array([.5, .9, .9]), np.array([1, 3, 2]), 2).tolist()
    [2, 1]
    """
    among = contenders(scores, depth)
    rounded = np.round(scores[among].astype(np.float64), DIGITS)
    return among[np.lexsort((ids[among], -rounded))[:depth]]


class HitsBuilder:
    """Collects ranked memories, query by query, and makes one ``hits`` table of them."""

    def __init__(self) -> None:
        self._lanes: list[tuple[str, int]] = []
        self._queries: list[tuple[int, int]] = []
        self._memories: list[Ints] = []
        self._scores: list[Scores] = []

    def add(self, lane: str, query: int, memories: Ints, scores: Scores, depth: int) -> None:
        """Rank the memories (n,) of one query in one lane by their scores (n,), and keep the best ``depth``."""
        order = best(scores, memories, depth)
        if len(order):
            self._lanes.append((lane, len(order)))
            self._queries.append((query, len(order)))
            self._memories.append(memories[order])
            self._scores.append(np.round(scores[order].astype(np.float64), DIGITS))

    def frame(self) -> pl.DataFrame:
        """Return the ``hits`` table, in the order in which queries were added, by rank; scores are rounded."""
        if not self._lanes:
            return pl.DataFrame(schema=SCHEMAS["hits"])
        counts = np.array([n for _, n in self._lanes])
        names = list(dict.fromkeys(lane for lane, _ in self._lanes))
        codes = np.repeat([names.index(lane) for lane, _ in self._lanes], counts)
        return pl.DataFrame(
            {
                "query": np.repeat([q for q, _ in self._queries], counts),
                "lane": pl.Series(names).gather(codes),
                "memory": np.concatenate(self._memories),
                "score": np.concatenate(self._scores),
                "rank": np.concatenate([np.arange(1, n + 1) for n in counts]),
            },
            schema=SCHEMAS["hits"],
        )
