"""Pools with token vectors: what a search may see, kept for as long as the memories stay the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from memlab.pipeline.tables import Tables
from memlab.stages.search.token_pools import MOST_PLACES, Places, TokenPool, token_pools
from memlab.store import Store
from memlab.store.token_vectors import TokenVectors
from tests.stages.search.world import day, world
from tests.token_words import TokenWords

MEMORIES = [(0, "tea now", day(2), "turn"), (0, "cat", day(1), "turn"), (0, "tea now", day(0), "turn"),
            (0, "cat", day(0), "session"), (1, "rain", day(0), "turn")]


@pytest.fixture
def encode(tmp_path: Path):
    store, calls = Store(tmp_path), []

    def vectors(keys: pl.DataFrame) -> TokenVectors:
        calls.append(keys.height)
        return store.token_vectors(TokenWords(), keys, "document")

    vectors.calls = calls  # type: ignore[attr-defined]
    return vectors


def tables(memories=MEMORIES) -> Tables:
    return world(memories, [(0, "tea?", day(3))])


def words(pool: TokenPool) -> list[tuple[int, ...]]:
    """The token ids of each memory."""
    return [tuple(pool.texts.text(text)[0].tolist()) for text in pool.text_of]


def test_a_pool_holds_the_memories_by_day_and_each_text_once(encode) -> None:
    turns, sessions, others = sorted(token_pools(tables(), None, encode),
                                     key=lambda pool: (pool.rows.corpus, -len(pool.memories)))
    tea, cat, rain = (tuple(ids.tolist()) for ids in TokenWords().token_ids(["tea now", "cat", "rain"]))
    assert (turns.rows.kind, words(turns)) == ("turn", [tea, cat, tea])
    assert (sessions.rows.kind, words(sessions)) == ("session", [cat])
    assert (others.rows.corpus, words(others)) == (1, [rain])
    assert len(turns.texts) == 2
    ids = tables()["memories"]["memory"].to_numpy()
    assert turns.memories.tolist() == ids[turns.rows.memories].tolist()


def test_places_are_those_of_the_visible_memories(encode) -> None:
    pool = max(token_pools(tables(), ["turn"], encode), key=lambda pool: len(pool.memories))
    for visible in [1, 2, 3, *range(1, MOST_PLACES + 3), 2]:
        wanted = Places(pool.sessions[:visible], pool.memories[:visible], 2)
        np.testing.assert_array_equal(pool.places(visible, 2).column, wanted.column)
        assert pool.places(visible, 2) is pool.places(visible, 2)
