"""Marked questions: what their files hold, conflicts, faults, and what a restart finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memlab.data.custom import Custom
from memlab.data.jsonl import QUESTIONS, Evidence, read
from memlab.data.questions.log import Log, TurnPlace
from memlab.data.questions.marking import Change, Conflict, Marking, NewQuestion
from memlab.data.questions.propose import propose
from memlab.support.errors import MemlabError
from tests.chat_exports import json_lines, write
from tests.faults.limits import largest_file

SESSIONS = [{"corpus": "ann", "session": "s1", "said_on": "2024-03-01", "turns": [
    {"role": "user", "text": "My cat is called Tom."}, {"role": "user", "text": "My rent is $900."}]}]
ASKED = {"question": "q2", "corpus": "ann", "text": "Which pet?", "asked_on": "2024-03-02", "category": "pets",
         "evidence": [{"session": "s1"}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, {"sessions.jsonl": json_lines(*SESSIONS)})


def opened(folder: Path) -> Marking:
    content = read(folder)
    return Marking(folder, Log(content.sessions), propose(content.sessions), content.questions)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / QUESTIONS).read_text("utf-8").splitlines()]


def change(name: str, revision: int = 0, status: str = "kept", text: str = "What is my cat called?", turn: int = 0,
           answer: str = "Tom") -> Change:
    return Change.model_validate({"name": name, "revision": revision, "status": status, "text": text,
                                  "answer": answer, "evidence": [Evidence(session="s1", turn=turn)]})


def test_a_change_is_in_the_file_that_a_run_reads_before_it_is_confirmed(folder: Path) -> None:
    pages = opened(folder)
    assert [(one.line.question, one.status, one.source) for one in pages.entries.values()] == [
        ("q1", "proposed", TurnPlace(0, 0)), ("q2", "proposed", TurnPlace(0, 1))]
    assert not (folder / QUESTIONS).exists()
    pages.change(change("q1"))
    assert lines(folder) == [{"question": "q1", "corpus": "ann", "text": "What is my cat called?", "answer": "Tom",
                              "evidence": [{"session": "s1", "turn": 0}]}]
    assert Custom(path=folder).load()["evidence"].select("question", "session", "turn").rows() == [(0, 0, 0)]


def test_lines_that_were_there_keep_their_fields_and_names(folder: Path) -> None:
    write(folder, {QUESTIONS: json_lines(ASKED)})
    pages = opened(folder)
    assert [one.line.question for one in pages.entries.values()] == ["q2", "q1", "q3"]
    pages.add(NewQuestion(corpus="ann", text=" Where do  I live? "))
    assert lines(folder) == [ASKED, {"question": "q4", "corpus": "ann", "text": "Where do I live?"}]


def test_what_is_skipped_or_reworded_is_not_proposed_again(folder: Path) -> None:
    pages = opened(folder)
    pages.change(change("q1", text="Name of my pet?"))
    pages.change(change("q2", status="skipped", text="How much is my rent?", turn=1, answer="$900"))
    again = opened(folder)
    assert {one.line.text: one.status for one in again.entries.values()} == {
        "Name of my pet?": "kept", "What is my cat called?": "skipped", "How much is my rent?": "skipped"}
    again.change(change("q2", text="How much is my rent?", turn=1, answer="$900"))
    assert [one.text for one in read(folder).questions] == ["Name of my pet?", "How much is my rent?"]


def test_a_change_of_what_changed_meanwhile_is_refused(folder: Path) -> None:
    pages = opened(folder)
    pages.change(change("q1"))
    with pytest.raises(Conflict, match="another window"):
        pages.change(change("q1", answer="Tim"))
    write(folder, {QUESTIONS: json_lines(ASKED)})
    with pytest.raises(Conflict, match="another program"):
        pages.change(change("q1", revision=1, answer="Tim"))
    assert lines(folder) == [ASKED]
    assert "Which pet?" in [one.line.text for one in pages.entries.values()]


def test_faulty_changes_change_nothing(folder: Path) -> None:
    pages = opened(folder)
    for wrong in (change("q9"), change("q1", turn=7),
                  change("q1").model_copy(update={"evidence": [Evidence(session="s9", turn=0)]})):
        with pytest.raises(MemlabError):
            pages.change(wrong)
    with pytest.raises(MemlabError):
        pages.add(NewQuestion(corpus="bob", text="Q?"))
    assert not (folder / QUESTIONS).exists()


def test_a_full_disk_is_told_and_nothing_is_taken_for_saved(folder: Path) -> None:
    pages = opened(folder)
    with largest_file(10), pytest.raises(MemlabError, match="limit on file sizes .*; your last change is not saved"):
        pages.change(change("q1"))
    assert not (folder / QUESTIONS).exists()
    pages.change(change("q1"))
    assert len(read(folder).questions) == 1
