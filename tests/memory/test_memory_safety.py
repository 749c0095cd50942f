"""Live memory at its edges: wrong arguments are named, and a full disk costs no answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memlab import Store, compare, load, preset, run_pipeline
from memlab.memory import database
from memlab.memory.memory import Memory, Session, search_texts
from memlab.support.errors import MemlabError
from tests.small import lexical

CAT = Session("2023-05-20", [("user", "I adopted a cat named Tom."), ("assistant", "Lovely!")], "cat")
MESSAGE: Any = {"role": "user", "content": "Hi"}
WORDS: Any = "system=best"


@pytest.mark.parametrize(("call", "sentence"), [
    (lambda memory: memory.search(" "), "the question is blank"),
    (lambda memory: memory.search(["cat"]), r"Memory.search, question: \['cat'\] does not fit. Fix: give text"),
    (lambda memory: memory.search("cat", k=0), "search, k: 0 does not fit. Fix: give 1 or more, or None"),
    (lambda memory: memory.search("cat", k="five"), "k: 'five' does not fit. Fix: give a whole number, or None"),
    (lambda memory: memory.search("cat", threshold="high"), "threshold: 'high' does not fit. Fix: give a number"),
    (lambda memory: memory.search("cat", 5), "now: 5 does not fit. Fix: write 2023-05-20"),
    (lambda memory: memory.list(count=-1), "Memory.list, count: -1 does not fit. Fix: give 0 or more, or None"),
    (lambda memory: memory.add_document("plan.md", max_mb="big"), "max_mb: 'big' does not fit. Fix: give a number"),
    (lambda memory: memory.update("cat", CAT, keep_old="no"), "keep_old: 'no' does not fit. Fix: give True or False"),
    (lambda memory: memory.backup(""), "folder: '' does not fit. Fix: give text that is not empty, or a Path"),
    (lambda memory: memory.export(5), "file: 5 does not fit. Fix: give text, or a Path"),
    (lambda memory: memory.count("user"), "where: 'user' does not fit. Fix: write {"),
    (lambda _: Memory(None), "Memory, folder: None does not fit. Fix: give text, or a Path"),
    (lambda _: Memory("a", often="many"), "Memory, often: 'many' does not fit. Fix: give a whole number"),
    (lambda _: Memory("a", timezone="tokio"), "timezone: there is no time zone 'tokio'.*did you mean Asia/Tokyo"),
    (lambda _: Memory("a", often=True), "Memory, often: True does not fit"),
    (lambda _: Memory.from_folder(5, "a"), "Memory.from_folder, chats: 5 does not fit"),
    (lambda _: Store(flush_mb=-1), "Store, flush_mb: -1 does not fit. Fix: give 0 or more"),
    (lambda _: preset("system=best", 5), "preset, arguments: 5 does not fit. Fix: give words such as"),
    (lambda _: load(""), "load, folder: '' does not fit"),
    (lambda _: compare("a", 5), "compare, runs: 5 does not fit. Fix: give a folder of runs, or what load returns"),
    (lambda _: run_pipeline(lexical(), 5, "a"), "run_pipeline, dataset: 5 does not fit. Fix: give a Dataset"),
    (lambda _: search_texts([], "cat", k=-1), "search_texts, k: -1 does not fit"),
    (lambda _: search_texts("I adopted a cat.", "cat"), r"search_texts: expected a list of texts.*\[text, text"),
    (lambda memory: memory.add(None), "session: None does not fit. Fix: write"),
    (lambda memory: memory.add(MESSAGE), "expected a list of messages, got dict"),
    (lambda memory: memory.add([("user", "Hi")]), "message 0: expected an object"),
    (lambda memory: memory.add([{"role": "system", "content": "Be brief."}]), "no message of the user"),
    (lambda memory: memory.add([{**MESSAGE, "content": 3}]), "message 0, field content"),
    (lambda memory: memory.add([MESSAGE, {**MESSAGE, "role": "bot"}]), "message 1: there is no role 'bot'"),
    (lambda memory: memory.add_many([MESSAGE]), "session 0: expected a Session, got dict"),
    (lambda memory: memory.add_many(CAT), r"add_many, sessions: .* does not fit. Fix: write \[Session\("),
    (lambda memory: memory.get("cats"), r"there is no session 'cats'.*did you mean '?cat"),
    (lambda memory: memory.forget(["cat"]), r"session: \['cat'\] does not fit. Fix: list\(\) returns"),
    (lambda memory: memory.forget("cat", [0, 2]), r"session 0 has no turns \[0, 2\]. Fix: give a list with some of"),
    (lambda memory: memory.forget("cat", 0), "turns: 0 does not fit. Fix: give a list"),
    (lambda memory: memory.forget("cat", "first"), "session 0 has no turns .*give a list"),
    (lambda memory: memory.feedback({}, "yes"), "useful: 'yes' does not fit. Fix: give True or False"),
    (lambda memory: memory.feedback({"session": 0}, True), "expected a result, which has"),
    (lambda memory: memory.feedback({"session": 7, "turns": [0]}, True), "there is no session 7"),
    (lambda memory: memory.feedback("cat", True), r"result: 'cat' does not fit.*found\[0\], or several"),
    (lambda _: Memory("a", WORDS), r"Memory, pipeline: 'system=best' does not fit. Fix: preset\("),
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
