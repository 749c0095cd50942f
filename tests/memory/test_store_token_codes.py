"""Centroids and codes of a live memory on disk: they spare work, change no ranking, and leave with forgotten texts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from memlab.memory.memory import Memory
from memlab.stages.search.token_lists import TokenLists
from tests.stages.search.test_late_index_live import indexed, session, token_lists


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A memory with an index."""
    with Memory(tmp_path, indexed()) as memory:
        memory.add_many(session(n) for n in range(12))
        memory.search("tea", "2024-01-01")
    return tmp_path


@contextmanager
def reopened(folder: Path) -> Iterator[tuple[Memory, TokenLists]]:
    """A memory that has answered a question, and its lists."""
    with Memory(folder, indexed()) as memory:
        memory.search("tea", "2024-01-01")
        yield memory, token_lists(memory)


def test_a_reopened_memory_assigns_what_is_new_alone(folder: Path) -> None:
    with reopened(folder) as (memory, lists):
        assert lists.assigned == 0
        memory.add(session(12))
        memory.search("tea", "2024-01-01")
        assert lists.assigned == sum(len(turn.text.split()) for turn in session(12).turns)
        expected = lists._text_of, lists._codes, lists._ids
    with reopened(folder) as (_, lists):
        assert lists.assigned == 0
        for one, other in zip(expected, (lists._text_of, lists._codes, lists._ids)):
            np.testing.assert_array_equal(one, other)


def test_what_is_forgotten_leaves_no_code_and_no_centroid(folder: Path) -> None:
    with reopened(folder) as (memory, _):
        memory.forget("3")
        memory.add(session(12))  # with centroids that know of the forgotten texts
        memory.search("tea", "2024-01-01")
        assert not list(folder.glob("store/codes/*"))
    with reopened(folder) as (_, lists):
        assert lists.assigned > 0
    with reopened(folder) as (_, lists):
        assert lists.assigned == 0


@pytest.mark.parametrize("damage", [lambda content: content[:-1], lambda content: b"x" + content[1:], lambda _: b""])
def test_a_damaged_file_is_made_again(folder: Path, damage) -> None:
    with reopened(folder) as (memory, _):
        before = memory.search("number5 cat", "2024-01-01")
    (file,) = folder.glob("store/codes/*")
    file.write_bytes(damage(file.read_bytes()))
    with reopened(folder) as (memory, lists):
        assert lists.assigned > 0
        assert memory.search("number5 cat", "2024-01-01").equals(before)
    with reopened(folder) as (_, lists):
        assert lists.assigned == 0


def test_codes_that_cannot_be_saved_are_named_and_harm_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for file in folder.glob("store/codes/*"):
        file.unlink()
    monkeypatch.setattr(os, "replace", full)
    with pytest.warns(UserWarning, match="index of token vectors is not saved.*disk is full"), reopened(folder):
        pass
