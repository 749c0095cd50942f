"""Memories side by side by session."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.protocols import Ints
from memlab.stages.search.token_pools import Places

memories = st.lists(st.tuples(st.integers(0, 4), st.floats(-1, 1, width=32)), min_size=1, max_size=25)


def line(sessions: Ints, gap: int) -> tuple[Places, Ints]:
    """The places of memories whose ids are in another order than their rows."""
    ids = np.random.default_rng(0).permutation(len(sessions))
    return Places(sessions, ids, gap), ids


@given(memories, st.integers(0, 3))
def test_maxima_on_the_line_are_those_of_windows_and_sessions(rows: list[tuple[int, float]], gap: int) -> None:
    sessions, values = np.array([s for s, _ in rows]), np.array([v for _, v in rows], np.float32)
    places, ids = line(sessions, gap)
    matches = np.full((1, places.width), -np.inf, np.float32)
    matches[0, places.column] = values
    every = np.arange(len(places.begins))
    wide, best = places.in_window(matches)[0, places.column], places.in_sessions(matches, every)
    session = np.unique(sessions, return_inverse=True)[1]
    for memory, home in enumerate(sessions):
        mine = [other for other in np.argsort(ids) if sessions[other] == home]
        at = mine.index(memory)
        assert wide[memory] == values[mine[max(0, at - gap):at + gap + 1]].max()
        assert best[0, session[memory]] == values[mine].max()
    last = places.in_sessions(matches, every[-1:])
    assert last[0, 0] == best[0, -1]


@given(memories, st.integers(0, 3))
def test_columns_around_and_of_sessions_are_the_memories_there(rows: list[tuple[int, float]], gap: int) -> None:
    sessions = np.array([s for s, _ in rows])
    places, ids = line(sessions, gap)
    session_of = np.unique(sessions, return_inverse=True)[1]
    assert sorted(places.memory[places.of_sessions(np.array([0]))]) == np.flatnonzero(session_of == 0).tolist()
    near = places.memory[places.around(places.column[:1])]
    mine = [m for m in np.argsort(ids) if sessions[m] == sessions[0]]
    at = mine.index(0)
    assert sorted(near) == sorted(mine[max(0, at - gap):at + gap + 1])
