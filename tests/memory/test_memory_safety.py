"""Live memory at its edges: wrong arguments are named, and a full disk costs no answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlab.memory import database
from memlab.memory.memory import Memory, Session, search_texts
from memlab.support.errors import MemlabError
from tests.small import lexical

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")], "cat")
WORDS: Any = "system=best"


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda memory: memory.search(" "), "the question is blank"),
    (lambda memory: memory.search(["cat"]), "question: expected text, got list. Fix: give one question as text"),
    (lambda memory: memory.search("cat", k=0), "k: 0 is no number of results"),
    (lambda memory: memory.search("cat", k="five"), "k: 'five' is no number of results. Fix: give 1 or more, or None"),
    (lambda memory: memory.search("cat", threshold="high"), "threshold: 'high' is no score. Fix: give a number"),
    (lambda _: search_texts("I adopted a cat.", "cat"), r"search_texts: expected a list of texts.*\[text, text"),
    (lambda memory: memory.add(None), "session: expected a list of messages, got NoneType. Fix: write"),
    (lambda memory: memory.add_many([{"role": "user", "content": "Hi"}]), "session 0: expected a Session, got dict"),
    (lambda memory: memory.add_many(CAT), r"add_many: expected a list of sessions.*\[Session\("),
    (lambda memory: memory.get("cats"), r"there is no session 'cats'.*did you mean '?cat"),
    (lambda memory: memory.forget(["cat"]), "session: expected a number or a name"),
    (lambda memory: memory.forget("cat", [0, 2]), r"session 0 has no turns \[0, 2\]. Fix: give a list with some of"),
    (lambda memory: memory.forget("cat", 0), r"session 0 has no turns 0. Fix: give a list with some of \[0, 1\]"),
    (lambda memory: memory.forget("cat", "first"), "session 0 has no turns .*give a list"),
    (lambda memory: memory.feedback("cat", "yes"), "useful: 'yes' is no vote. Fix: give True or False"),
    (lambda memory: memory.search_vector("cat"), "vector: it is no vector. Fix: give a list of finite numbers"),
    (lambda memory: memory.feedback("cat", True), r"expected a result, which has.*found\[0\], or several"),
    (lambda _: Memory("a", WORDS), r"Memory, pipeline: expected a Pipeline, given str. Fix: preset\("),
    (lambda _: Memory("a", store=WORDS), r"Memory, store: expected a Store, given str. Fix: give memlab.Store\("),
    (lambda _: Session("2023-05-20", "Hi"), "expected a list of turns, got str. Fix: write turns as"),
    (lambda _: Session("20 May", []), "'20 May' is no date.*write 2023-05-20"),
    (lambda _: Session(None, [("bot", "Hi")]), "there is no role 'bot'.*assistant, user"),
    (lambda _: Session(None, [("user", 3)]), "expected text, got int"),
    (lambda _: Session(None, ["Hi"]), "'Hi' is no turn"),
    (lambda _: Session(None, [], 5), "session, name: expected text, got")])
def test_a_wrong_argument_is_named(tmp_path: Path, call: Callable[[Memory], object], sentence: str) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)
        with pytest.raises(MemlabError, match=sentence):
            call(memory)
        assert len(memory) == 1


def test_a_question_is_answered_when_counts_cannot_be_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add(CAT)

        def full(self: database.Database, statement: str, *rows: object) -> None:
            with self.errors():
                raise sqlite3.OperationalError("database or disk is full")

        monkeypatch.setattr(database.Database, "run", full)
        with pytest.warns(UserWarning, match="access counts are not saved: .*disk is full"):
            assert memory.search("cat", "2023-06-01").height
        assert memory.search("cat", "2023-06-01").height  # named once
