"""Memories side by side by session, with gaps between the sessions, so that maxima over neighbours are shifts."""

from __future__ import annotations

import numpy as np

from memlab.models.protocols import Floats, Ints


class Places:
    """A line with a column for each of n memories, by session, then by id, and ``gap`` empty ones between sessions.

    Args:
        sessions, ids: (n,) the session and the id of each memory.
        gap: Columns before, between and behind the sessions.

    Attributes:
        width: Columns.
        column: (n,) the column of each memory.
        memory: (width,) the memory of each column, n for an empty one.
        begins, ends: (s,) the columns of each session.
    """

    def __init__(self, sessions: Ints, ids: Ints, gap: int) -> None:
        order = np.lexsort((ids, sessions))
        starts = np.flatnonzero(np.diff(sessions[order], prepend=-1))
        lengths = np.diff(np.append(starts, len(order)))
        self.gap, self.width = gap, len(order) + gap * (len(starts) + 1)
        self.begins = starts + gap * np.arange(1, len(starts) + 1)
        self.ends = self.begins + lengths
        columns = np.arange(len(order)) + gap * np.repeat(np.arange(1, len(starts) + 1), lengths)
        self.column = np.empty(len(order), np.int64)
        self.column[order] = columns
        self.memory = np.full(self.width, len(order), np.int64)
        self.memory[columns] = order

    def in_window(self, matches: Floats) -> Floats:
        """Return the best matches (t, width) among those up to ``gap`` columns away; empty columns are -inf.

        The values of empty columns mean nothing.
        """
        wide = matches.copy()
        for step in range(1, self.gap + 1):
            np.maximum(wide[:, step:], matches[:, :-step], out=wide[:, step:])
            np.maximum(wide[:, :-step], matches[:, step:], out=wide[:, :-step])
        return wide

    def in_sessions(self, matches: Floats, sessions: Ints) -> Floats:
        """Return the best matches (t, m) of the tokens in each of m sessions, from matches (t, width)."""
        edges = np.stack([self.begins[sessions], self.ends[sessions]], axis=1).ravel()
        if len(edges) and edges[-1] == self.width:  # to the end of the line
            edges = edges[:-1]
        return np.maximum.reduceat(matches, edges, axis=1)[:, ::2]

    def around(self, columns: Ints) -> Ints:
        """Return the columns with memories up to ``gap`` columns from some columns (m,), each once, ascending."""
        near = np.unique(columns[:, None] + np.arange(-self.gap, self.gap + 1))
        return near[self.memory[near] < len(self.column)]

    def of_sessions(self, sessions: Ints) -> Ints:
        """Return the columns of some sessions."""
        parts = [np.arange(begin, end) for begin, end in zip(self.begins[sessions], self.ends[sessions])]
        return np.concatenate(parts) if parts else np.empty(0, np.int64)
