"""Centroids and codes of a live memory on disk: they spare work, change no ranking, and leave with forgotten texts."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from memlab.errors import MemlabError
from memlab.live.database import FILE, Database
from memlab.live.store import TokenCodes
from memlab.memory import Memory
from memlab.pipeline import Pipeline
from memlab.search.late_index import LateIndex
from memlab.search.token_lists import TokenLists
from tests.search.test_late_index_live import session, token_lists
from tests.small import content_of
from tests.token_words import TokenWords

KEYS = np.arange(6, dtype=np.uint64).reshape(3, 2)
STARTS, CODES = np.array([0, 2, 2, 5]), np.array([3, 1, 0, 2, 2], np.uint16)
CENTROIDS = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)


def indexed(candidates: int = 1000) -> Pipeline:
    return Pipeline(late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=16,  # type: ignore[arg-type]
                                   candidates=candidates))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with an index."""
    made = tmp_path_factory.mktemp("whole") / "memory"
    with Memory(made, indexed()) as memory:
        for n in range(12):
            memory.add(session(n))
        memory.search("tea", "2024-01-01")
    return made


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of a memory with an index."""
    return Path(shutil.copytree(whole, tmp_path / "memory"))


@contextmanager
def reopened(folder: Path) -> Iterator[tuple[Memory, TokenLists]]:
    """A memory that has answered a question, and its lists."""
    with Memory(folder, indexed()) as memory:
        memory.search("tea", "2024-01-01")
        yield memory, token_lists(memory)


def rows(folder: Path, statement: str = "SELECT count(*) FROM token_codes") -> list[tuple[object, ...]]:
    database = sqlite3.connect(folder / FILE)
    with database:
        found = database.execute(statement).fetchall()
    database.close()
    return found


def test_a_reopened_memory_assigns_what_is_new_alone(folder: Path) -> None:
    with reopened(folder) as (memory, lists):
        assert lists.assigned == 0
        memory.add(session(12))
        memory.search("tea", "2024-01-01")
        new = sum(len(turn.text.split()) for turn in session(12).turns)
        assert lists.assigned == new
    with reopened(folder) as (_, lists):
        assert lists.assigned == 0


def test_saved_codes_are_those_that_were_assigned(folder: Path) -> None:
    with reopened(folder) as (_, lists):
        saved = lists._text_of.copy(), lists._codes.copy(), lists._ids.copy()
        again = [lists._centroids.nearest(lists._centroids.vectors)]  # type: ignore[union-attr]
    rows(folder, "DELETE FROM token_codes")
    with reopened(folder) as (_, lists):
        assert lists.assigned == len(saved[1])
        for one, other in zip(saved, (lists._text_of, lists._codes, lists._ids)):
            np.testing.assert_array_equal(one, other)
        assert again[0].tolist() == lists._centroids.nearest(lists._centroids.vectors).tolist()  # type: ignore[union-attr]


def test_what_is_forgotten_leaves_no_code_and_no_centroid(folder: Path) -> None:
    with reopened(folder) as (memory, _):
        memory.forget("3")
        assert content_of(memory)._database.rows("SELECT * FROM token_codes") == []
        assert content_of(memory)._database.rows("SELECT * FROM token_centroids") == []
        memory.add(session(12))  # with centroids that know of the forgotten texts
        memory.search("tea", "2024-01-01")
    assert rows(folder) == [(0,)]
    with reopened(folder) as (_, lists):
        assert lists.assigned > 0
    assert rows(folder) == [(24,)]
    with reopened(folder) as (_, lists):
        assert lists.assigned == 0


DAMAGE = """
UPDATE token_centroids SET content = substr(content, 1, length(content) - 1)
UPDATE token_centroids SET content = zeroblob(length(content))
UPDATE token_centroids SET content = zeroblob(0)
UPDATE token_centroids SET content = 'x'
UPDATE token_centroids SET dim = 0
UPDATE token_centroids SET dim = 'x'
UPDATE token_centroids SET dim = 8
UPDATE token_centroids SET trained_for = -1
UPDATE token_centroids SET trained_for = 1e300
UPDATE token_centroids SET digest = 5
DELETE FROM token_centroids
UPDATE token_codes SET content = zeroblob(length(content))
UPDATE token_codes SET content = zeroblob(3)
UPDATE token_codes SET content = 'x'
UPDATE token_codes SET digest = 5
UPDATE token_codes SET key = 'x' || key
UPDATE token_codes SET key = 5 WHERE rowid = 1
DELETE FROM token_codes WHERE rowid % 2
"""


@pytest.mark.parametrize("damage", DAMAGE.strip().splitlines())
def test_damaged_rows_are_made_again(folder: Path, damage: str) -> None:
    def answers() -> list[object]:
        with Memory(folder, indexed(3)) as memory:
            return [memory.search(question, "2024-01-01").rows() for question in ("tea", "Tom garden", "number5 cat")]

    before = answers()
    rows(folder, damage)
    assert answers() == before


def test_nothing_is_saved_where_the_folder_cannot_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows(folder, "DELETE FROM token_codes")
    writable = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK and writable(path, mode))
    with reopened(folder) as (_, lists):
        assert lists.assigned > 0
    assert rows(folder) == [(0,)]


def test_codes_come_back_as_they_were_saved(database: Database) -> None:
    saved = TokenCodes(database, "settings")
    assert saved.centroids() is None
    saved.replace(CENTROIDS, 100)
    saved.add(KEYS[:2], STARTS[:3], CODES[:2])
    saved.add(KEYS[2:], np.array([0, 3]), CODES[2:])
    again = TokenCodes(database, "settings")
    centroids, trained_for = again.centroids() or (None, 0)
    assert np.array_equal(centroids, CENTROIDS)
    assert trained_for == 100
    assert [part.tolist() for part in again.codes()] == [KEYS.tolist(), STARTS.tolist(), CODES.tolist()]
    assert TokenCodes(database, "other settings").centroids() is None


def test_codes_of_more_centroids_than_fit_into_two_bytes_are_whole(database: Database) -> None:
    saved = TokenCodes(database, "settings")
    saved.replace(np.ones((65_537, 1), np.float32), 100)
    saved.add(KEYS[:1], np.array([0, 2]), np.array([65_536, 1]))
    again = TokenCodes(database, "settings")
    again.centroids()
    assert saved.codes()[2].tolist() == again.codes()[2].tolist() == [65_536, 1]


def test_new_centroids_drop_the_codes_of_the_old_ones(database: Database) -> None:
    saved = TokenCodes(database, "settings")
    saved.replace(CENTROIDS, 100)
    saved.add(KEYS, STARTS, CODES)
    saved.replace(-CENTROIDS, 100)
    assert len(saved.codes()[0]) == 0


def test_codes_that_cannot_be_saved_are_named_and_harm_nothing(database: Database,
                                                               monkeypatch: pytest.MonkeyPatch) -> None:
    saved = TokenCodes(database, "settings")
    saved.replace(CENTROIDS, 100)

    def full(*_: object) -> None:
        raise MemlabError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(database, "run", full)
        with pytest.warns(UserWarning, match=r"index of token vectors is not saved.*the disk is full"):
            saved.add(KEYS, STARTS, CODES)
    assert len(saved.codes()[0]) == 0
