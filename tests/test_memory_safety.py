"""Live memory at its edges: odd arguments, a full disk or a read-only folder, deleted files, growth."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlab.errors import MemlabError
from memlab.live import database
from memlab.memory import Memory, Session, Turn
from memlab.pipeline import Pipeline
from memlab.search.dense import Dense
from tests.search.world import WordEmbedder
from tests.small import content_of, lexical

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
            assert memory.list()["name"].to_list() == ["?"]


@pytest.mark.parametrize("k", ["3", -1, 0, True, 1.5])
def test_a_number_of_results_that_is_none_is_refused(tmp_path: Path, k: Any) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        for ask in (memory.search, memory.look, memory.history):
            with pytest.raises(MemlabError, match="is no number of results"):
                ask("cat", "2023-06-01", k)


ODD: list[Any] = [None, 5, -1, 2**63, 10**30, 5.5, float("nan"), True, "text", "", "\0", "\ud800", b"x", object(),
                  print, Session, {}, {1}, {"a": 1}, [], [5], [None], ["x", 5], [[1]], [{}], [True], [0.0], [2**70],
                  [{"role": "user"}], [{"role": "user", "content": 5}], [{"role": 5, "content": "x"}]]
HUGE: list[Any] = [10**5000, -10**5000, [10**5000]]
"""Numbers that Python does not write."""

MESSAGES = [{"role": "user", "content": "Hi"}]
CALLS: dict[str, Callable[[Memory, Any], object]] = {
    "add": lambda memory, odd: memory.add(odd),
    "add, said_on": lambda memory, odd: memory.add(MESSAGES, odd),
    "add, name": lambda memory, odd: memory.add(MESSAGES, None, odd),
    "add_many": lambda memory, odd: memory.add_many(odd),
    "add_many, session": lambda memory, odd: memory.add_many([odd]),
    "from_folder": lambda memory, odd: Memory.from_folder(odd, memory.folder.parent / "other"),
    "search": lambda memory, odd: memory.search(odd),
    "search, now": lambda memory, odd: memory.search("cat", odd),
    "search, k": lambda memory, odd: memory.search("cat", None, odd),
    "look": lambda memory, odd: memory.look(odd, odd, odd),
    "history": lambda memory, odd: memory.history(odd, odd, odd),
    "answer": lambda memory, odd: memory.answer(odd, odd),
    "search, where": lambda memory, odd: memory.search("cat", where={"user": odd, "metadata.page": odd, "after": odd}),
    "search_vector": lambda memory, odd: memory.search_vector(odd),
    "search_vector, numbers": lambda memory, odd: memory.search_vector([odd, 1]),
    "add_document, max_mb": lambda memory, odd: memory.add_document(text="Hi", name="a.md", max_mb=odd),
    "update, metadata": lambda memory, odd: memory.update("cat", MESSAGES, metadata=odd),
    "list, where": lambda memory, odd: memory.list(where={"metadata.a.b": odd}),
    "feedback, useful": lambda memory, odd: memory.feedback({"session": 0, "turns": [0]}, odd),
    "search, threshold": lambda memory, odd: memory.search("cat", threshold=odd),
    "count": lambda memory, odd: memory.count({"user": odd, "role": odd}),
    "forget, where": lambda memory, odd: memory.forget(where={"name": odd, "before": odd}),
    "update": lambda memory, odd: memory.update(odd, MESSAGES),
    "update, session": lambda memory, odd: memory.update("cat", odd),
    "deprecate": lambda memory, odd: memory.deprecate(odd),
    "deprecate, since": lambda memory, odd: memory.deprecate("cat", None, odd),
    "restore, turns": lambda memory, odd: memory.restore("cat", odd),
    "feedback": lambda memory, odd: memory.feedback(odd, True),
    "feedback, parts": lambda memory, odd: memory.feedback({"session": odd, "turns": odd}, True),
    "feedback, turns": lambda memory, odd: memory.feedback({"session": "cat", "turns": odd}, True),
    "forget": lambda memory, odd: memory.forget(odd),
    "forget, turns": lambda memory, odd: memory.forget("cat", odd),
    "get": lambda memory, odd: memory.get(odd),
    "list": lambda memory, odd: memory.list(odd),
    "list, count": lambda memory, odd: memory.list(0, odd),
    "prune": lambda memory, odd: memory.prune(odd),
    "backup": lambda memory, odd: memory.backup(odd),
    "Memory": lambda _, odd: Memory(odd, lexical()),
    "Memory, pipeline": lambda memory, odd: Memory(memory.folder, odd),
    "Memory, store": lambda memory, odd: Memory(memory.folder, None, odd),
    "Memory, often": lambda memory, odd: Memory(memory.folder, often=odd),
    "Memory, timezone": lambda memory, odd: Memory(memory.folder, timezone=odd),
    "Session": lambda _, odd: Session(odd, []),
    "Session, turns": lambda _, odd: Session(None, odd),
    "Session, turn": lambda _, odd: Session(None, [odd]),
    "Session, parts": lambda _, odd: Session(None, [(odd, odd)]),
    "Session, name": lambda _, odd: Session(None, [], odd),
    "Turn": lambda _, odd: Turn(odd, "Hi"),
    "Turn, text": lambda _, odd: Turn("user", odd, odd)}


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_taken_or_refused_in_a_sentence(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
                                                           ) -> None:
    monkeypatch.chdir(tmp_path)
    refused = 0
    with Memory(tmp_path / "memory", lexical()) as memory:
        for odd in [*ODD, *([] if name == "Memory, timezone" else HUGE)]:
            if not memory.list()["name"].is_in(["cat"]).any():  # a turns of None are all
                memory.add(CAT)
            try:
                CALLS[name](memory, odd)
            except MemlabError as error:
                assert str(error)  # noqa: PT017  (either outcome is right)
                refused += 1
    assert refused >= 10


NO_FOLDER: Any = None
TEXT: Any = "b"


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda memory: memory.search(3), "question: expected text, got int"),
    (lambda memory: memory.add(None), "session: expected a list of messages, got NoneType. Fix: write"),
    (lambda memory: memory.add("text"), "session: expected a list of messages, got str. Fix: write"),
    (lambda memory: memory.forget(0.0), "session: expected a number or a name"),
    (lambda memory: memory.forget(["cat"]), "session: expected a number or a name"),
    (lambda memory: memory.forget(False), "session: expected a number or a name"),
    (lambda memory: memory.forget("cat", 5), r"session 0 has no turns 5. Fix: give a list with some of \[0, 1\]"),
    (lambda memory: memory.forget("cat", [0, 2]), r"session 0 has no turns \[0, 2\]. Fix: give a list"),
    (lambda memory: memory.backup(None), "backup: None is no folder. Fix: give its path"),
    (lambda _: Session("2023-05-20", "Hi"), "expected a list of turns, got str. Fix: write turns as"),
    (lambda _: Memory(NO_FOLDER), "Memory, folder: None is no folder"),
    (lambda _: Memory(""), "Memory, folder: '' is no folder"),
    (lambda memory: memory.feedback("cat", True), r"expected a result, got str. Fix: .*found\[0\], or several"),
    (lambda _: Memory("a", store=TEXT), "Memory, store: expected a Store, given str"),
    (lambda memory: memory.search("cat", threshold=True), "threshold: True is no score"),
    (lambda memory: memory.add_document(text="Hi", name="a.md", max_mb=True), "max_mb: True is no number of MB"),
    (lambda _: Memory("a", often=TEXT), "Memory, often: 'b' is no number of times")])
def test_a_wrong_argument_is_named(tmp_path: Path, call: Callable[[Memory], object], sentence: str) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        with pytest.raises(MemlabError, match=sentence):
            call(memory)
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
        assert content_of(memory).accesses.frame()["times"].to_list() == [2, 2]


def test_a_memory_that_cannot_be_written_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path, PIPELINE) as memory:
        memory.add(CAT)
        expected = memory.search("cat", "2023-06-01")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # as a read-only file system says
    with Memory(tmp_path, PIPELINE) as memory:
        assert memory.search("cat", "2023-06-01").equals(expected)
        hello, hit = Session("2023-05-21", [("user", "Hi")]), expected.row(0, named=True)
        for change in (lambda: memory.add(hello), lambda: memory.forget("cat"), lambda: memory.update("cat", hello),
                       lambda: memory.deprecate("cat"), lambda: memory.feedback(hit, useful=True)):
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
