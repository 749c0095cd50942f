"""Live memory at its edges: odd arguments, a full disk or a read-only folder, deleted files, growth."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.live import database
from memlab.memory import Memory, Session
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
from tests.search.world import WordEmbedder
from tests.small import lexical

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")], "cat")
PIPELINE = Pipeline(dense=Dense(embedder=WordEmbedder()))


@pytest.mark.parametrize("name", [5, True, ["a"], b"a"])
def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    with pytest.raises(MemlabError, match=r"session, name: expected text, got"):
        Session("2023-05-20", [("user", "Hi")], name)


def test_half_a_surrogate_in_a_name_breaks_nothing(tmp_path: Path) -> None:
    for _ in range(2):
        with Memory(tmp_path, lexical()) as memory:
            assert memory.add(Session("2023-05-20", [("user", "Hi")], "\ud800")) == 0
            assert memory.sessions()["name"].to_list() == ["?"]


@pytest.mark.parametrize("k", ["3", -1, 0, True, 1.5])
def test_a_number_of_results_that_is_none_is_refused(tmp_path: Path, k: Any) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        for ask in (memory.search, memory.look, memory.history):
            with pytest.raises(MemlabError, match="is no number of results"):
                ask("cat", "2023-06-01", k)


def test_questions_and_numbers_of_other_types_are_refused(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        with pytest.raises(MemlabError, match="question: expected text, got int"):
            memory.search(3)  # type: ignore[arg-type]
        for number in (["cat"], 0.0, False):
            with pytest.raises(MemlabError, match="session: expected a number or a name"):
                memory.forget(number)  # type: ignore[arg-type]
        assert len(memory) == 1


def test_a_question_is_answered_when_counts_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path, PIPELINE) as memory:
        memory.add(CAT)

        def full(self: database.Database, statement: str, *rows: object) -> None:
            with self.errors():
                raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(database.Database, "run", full)
        with pytest.warns(UserWarning, match="access counts are not saved: .*disk is full"):
            assert memory.search("cat", "2023-06-01").height
        assert memory.search("cat", "2023-06-01").height  # named once
        assert memory._accesses.frame()["times"].to_list() == [2, 2]


def test_a_memory_that_cannot_be_written_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path, PIPELINE) as memory:
        memory.add(CAT)
        expected = memory.search("cat", "2023-06-01")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # as a read-only file system says
    with Memory(tmp_path, PIPELINE) as memory:
        assert memory.search("cat", "2023-06-01").equals(expected)
        for change in (lambda: memory.add(Session("2023-05-21", [("user", "Hi")])), lambda: memory.forget("cat")):
            with pytest.raises(MemlabError, match="can be searched, but not changed"):
                change()
        assert memory.search("cat", "2023-06-01").equals(expected)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_deleted_database_costs_no_session_without_a_word(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        (tmp_path / "memory.db").rename(tmp_path / "away.db")
        with pytest.raises(MemlabError, match="memory.db was deleted or replaced"):
            memory.add(Session("2023-05-21", [("user", "Hi")]))


def test_a_memory_does_not_grow_by_what_is_forgotten(tmp_path: Path) -> None:
    def size() -> int:
        return sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())

    sizes = []
    for start in range(3):
        with Memory(tmp_path, PIPELINE) as memory:
            numbers = [memory.add(Session("2023-05-20", [("user", f"word{start} fact{n} " * 50)])) for n in range(30)]
            for number in numbers:
                memory.forget(number)
            memory.add(Session("2023-05-20", [("user", "Hi")], "one"))
        sizes.append(size())
    assert sizes[0] == sizes[1] == sizes[2]


def test_vectors_of_another_pipeline_are_forgotten_too(tmp_path: Path) -> None:
    other = Pipeline(dense=Dense(embedder=WordEmbedder(8)))
    for pipeline in (PIPELINE, other):
        with Memory(tmp_path, pipeline) as memory:
            memory.add(CAT)
            memory.search("cat", "2023-06-01")
    with Memory(tmp_path, lexical()) as memory:
        memory.forget("cat")
    assert not list(tmp_path.rglob("*.segment"))
