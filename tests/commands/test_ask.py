"""One question in the terminal: whose sessions, as of when, what is shown, and how faults are told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from memlab.commands.ask import AskCommand, main
from memlab.memory.memory import Memory, Session
from memlab.support.errors import Faults
from tests.small import LIVES, lexical

pytestmark = pytest.mark.slow

WORDS = ("system=plain", "search/dense=none", *LIVES)
NASTY = "[bold]cat[/bold] \x1b[31mred\x1b[0m \u202eeht [link=http://x]"


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(list(words))
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    return status, told.out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with Memory(tmp_path / "ann", lexical()) as memory:
        memory.add(Session("2023-05-20", [("user", f"A {NASTY} named Tom?"), ("assistant", "Lovely!")]))
        memory.add(Session("2023-07-01", [("user", "My cat ran away.")]))
        memory.add(Session(None, [("user", "A cat without a date.")]))
    return tmp_path / "ann"


def test_words_are_told_from_the_question() -> None:
    asked = AskCommand.of(["rank.select.k=3", "+seed=1", "corpus=life-0", "~late", "Is 1 = 2?", "now=2023-05-20"])
    assert asked.question == "Is 1 = 2?"
    assert asked.arguments == ["rank.select.k=3", "+seed=1", "~late"]
    assert asked.own == {"corpus": "life-0", "now": "2023-05-20"}
    for words, fault in ((["a=1"], "none is given"), (["Which", "pet"], "2 are given: Which, pet; put it in quotes"),
                         ([" "], "blank"), (["memory=x", "data=locomo", "Q?"], "data: a live memory has no data set")):
        with pytest.raises(Faults, match=fault):
            AskCommand.of(words)


def test_a_question_of_ones_own(capsys: pytest.CaptureFixture[str]) -> None:
    status, told = ask(capsys, *WORDS, "corpus=life-1", "rank.select.k=2", "--signals", "Which pet do I have?")
    assert status == 0
    assert "asked of life-1 of synthetic, 10 sessions, as of 20" in told
    assert re.search(r"^\* +1 +\d+\.\d{3} 20\d\d-\d\d-\d\d \d+:\d+ +(user|assistant): ", told, re.MULTILINE)
    assert told.count("lexical:turn") == 10  # what is selected, and some more
    assert len(re.findall(r"^\*", told, re.MULTILINE)) == 2
    assert "Context (2 items)" in told
    told = ask(capsys, *WORDS, "corpus=1", "Which pet do I have?")[1]
    assert re.findall(r"^(\d)\. ", told, re.MULTILINE) == ["1", "2", "3", "4", "5"]
    assert "read/answer=reader chat.url=" in told


def test_the_datas_own_question_knows_its_corpus_and_its_day(capsys: pytest.CaptureFixture[str]) -> None:
    status, by_id = ask(capsys, *WORDS, "life-1:2")
    assert status == 0
    words = by_id.splitlines()[0]
    line = next(line for line in by_id.splitlines() if line.startswith("asked of"))
    assert "life-1" in line
    if by_id.splitlines()[1] == line:  # a question of one line can be found by its words
        assert ask(capsys, *WORDS, words.upper())[1].splitlines()[1] == line
    status, told = ask(capsys, *WORDS, "life-1:2", "now=2000-01-01")
    assert status == 0
    assert "as of 2000-01-01" in told
    assert "nothing relevant was found" in told


@pytest.mark.parametrize(("words", "status", "fault"), [
    (["Which pet do I have?"], 2,
     "the embedded data have 2 corpora.*data=custom data.path=FOLDER.*corpus=NAME: life-0, life-1"),
    (["corpus=life-7", "Which?"], 2, "corpus=life-7: there is none of that name; did you mean 'life-1'"),
    (["corpus=life-0", "now=soon", "Which?"], 1, "now: 'soon' is no date"),
    (["corpus=life-0", "rank.select.kk=3", "Which?"], 2, "rank.select has no setting 'kk'; did you mean 'k'"),
    (["corpus=life-0", "rank/select=oracle", "Which?"], 1, "OracleSelect reads evidence"),
    (["corpus=life-0", "-m", "rank/select=gap", "Which?"], 2,
     "-m: memlab ask has no such flag, only --signals, -h, --help"),
    (["memory=/nowhere", "Which?"], 2, "data.lives: a live memory has no data set"),
    (["corpus=life-0", "timezone=Asia/Tokyo", "Which?"], 2, "timezone: is of a live memory"),
    (["corpus=life-0", "now=2023-06-01T10:00Z", "Which?"], 1, r"now: .* has a UTC offset, but .* \(the data\) has"),
])
def test_faults_are_told(capsys: pytest.CaptureFixture[str], words: list[str], status: int, fault: str) -> None:
    got, told = ask(capsys, *WORDS, *words)
    assert got == status
    assert re.search(fault, told)


def test_a_live_memory(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, told = ask(capsys, f"memory={folder}", "search/dense=none", "now=2023-06-01", "What is my cat called?")
    assert status == 0
    assert f"asked of the memory {folder}, as of 2023-06-01" in " ".join(told.split())
    assert "\n   assistant: Lovely!\n   2023-05-20, session 0" in told
    assert "ran away" not in told  # said later
    assert "without a date" in told
    status, told = ask(capsys, f"memory={folder}", "search/dense=none", "What is my cat called?")
    assert "ran away" in told
    with Memory(folder, lexical()) as memory:
        assert memory.list().height == 3
        status, told = ask(capsys, f"memory={folder}", "search/dense=none", "What?")
    assert status == 1
    assert "this memory is in use by this process" in told
    status, told = ask(capsys, f"memory={folder}/none", "search/dense=none", "What?")
    assert status == 1
    assert "there is no live memory" in told


def test_a_result_names_its_session_as_the_data_do_and_says_what_it_is_newer_than(
        capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lines = [("2024-02-09 general", "2024-02-09", "The API limit is 600 requests per minute."),
             ("retro", "2024-03-13", "The API limit is 900 requests per minute.")]
    (tmp_path / "sessions.jsonl").write_text("".join(json.dumps(
        {"corpus": "me", "session": name, "said_on": day, "turns": [{"role": "user", "speaker": "Ana", "text": text}]})
        + "\n" for name, day, text in lines), "utf-8")
    status, told = ask(capsys, "data=custom", f"data.path={tmp_path}", "system=plain", "search/dense=none",
                       "What is the API limit?")
    assert status == 0
    assert re.search(r"600 requests per minute\.\n   2024-02-09 general\n", told)
    assert re.search(r"900 requests per minute\.\n   2024-03-13, retro, newer than \d, which says", told)


def test_a_model_that_fails_is_told_in_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    broken = tmp_path / "model"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    status, told = ask(capsys, *LIVES, "corpus=life-0", f"embedder.model={broken}", f"store={tmp_path}/store", "Which?")
    assert status in (1, 2)
    assert told.startswith("memlab: ")
