from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path

import pytest

from memlab.data.custom import Custom, validate
from memlab.data.dataset import Dataset
from memlab.errors import Faults, MemlabError

SESSIONS = [
    {"corpus": "ann", "session": "late", "said_on": "2023-05-21T08:00:00+02:00", "turns": [
        {"role": "user", "text": "The cat is called Tom."}]},
    {"corpus": "ann", "session": "early", "said_on": "2023-05-20", "turns": [
        {"role": "user", "text": "I adopted a cat.", "speaker": "Ann"}, {"role": "assistant", "text": "Lovely!"}]},
    {"corpus": "bob", "session": "early", "said_on": "2023-01-01", "turns": []},  # nothing was said
]
QUESTIONS = [
    {"question": "q1", "corpus": "ann", "text": "Which pet?", "asked_on": "2023-05-21", "answer": "a cat",
     "category": "pets", "evidence": [{"session": "early", "turn": 0}, {"session": "late"}]},
    {"question": "q2", "corpus": "ann", "text": "Which dog?", "abstain": True},
]


def folder(path: Path, sessions: list, questions: list) -> Path:
    for name, lines in (("sessions", sessions), ("questions", questions)):
        said = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        (path / f"{name}.jsonl").write_text("\n".join(said) + "\n", "utf-8")
    return path


def test_a_folder_becomes_tables(tmp_path):
    data = Custom(path=str(folder(tmp_path, SESSIONS, QUESTIONS)))
    assert isinstance(data, Dataset)
    tables = data.load()
    assert tables["sessions"].filter(corpus=0)["said_on"].to_list() == [datetime(2023, 5, 20), datetime(2023, 5, 21, 8)]
    texts = dict(tables["texts"].iter_rows())
    assert [(s, t, r, n, texts[h]) for _, s, t, r, n, h in tables["turns"].iter_rows()] == [
        (0, 0, "user", "Ann", "I adopted a cat."), (0, 1, "assistant", None, "Lovely!"),
        (1, 0, "user", None, "The cat is called Tom.")]
    assert tables["questions"]["asked_on"].to_list() == [datetime(2023, 5, 21), datetime(2023, 5, 21, 8)]
    assert tables["evidence"].rows() == [(0, 0, 0), (0, 1, None)]
    assert tables["gold"].rows() == [(0, "a cat", "pets", False, True, None), (1, None, "all", True, False, None)]
    assert tables["ids"].filter(kind="session")["name"].to_list() == ["early", "late", "early"]
    assert data.grouping() == "auto"
    assert "1 questions have no date" in data.notes()[0]


def test_identity_is_of_content_not_of_place(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = (Custom(path=folder(tmp_path / n, SESSIONS, QUESTIONS)) for n in "ab")
    assert one.identity() == two.identity()
    folder(tmp_path / "b", SESSIONS, QUESTIONS[:1])
    assert one.identity() != two.identity()


def test_every_fault_is_named_by_file_line_and_field(tmp_path):
    sessions = [
        *SESSIONS,
        {"corpus": "ann", "session": "x", "said_on": "yesterday", "turns": [{"role": "bot", "text": 3, "name": "A"}]},
        {"corpus": "ann", "sesion": "x", "said_on": "2023-05-20", "turns": {}},
        "{'corpus': 1}", "",
        SESSIONS[0],
    ]
    questions = [{"question": "q1", "corpus": "ann"}, {**QUESTIONS[0], "asked": "2023-01-01"}, QUESTIONS[1],
                 {**QUESTIONS[1], "corpus": "anne", "abstain": "no"}, {**QUESTIONS[1], "corpus": "nobody"}]
    path = folder(tmp_path, sessions, questions)
    faults = validate(path)
    for place, words in [
        ("sessions.jsonl, line 4, field said_on", "expected a date"),
        ("sessions.jsonl, line 4, field turns[0].role", "'user' or 'assistant'"),
        ("sessions.jsonl, line 4, field turns[0].text", "valid string"),
        ("sessions.jsonl, line 4, field turns[0].name", "known: role, speaker, text"),
        ("sessions.jsonl, line 5, field session", "missing"),
        ("sessions.jsonl, line 5, field sesion", "did you mean 'session'?"),
        ("sessions.jsonl, line 5, field turns", "array"),
        ("sessions.jsonl, line 6", "invalid JSON"),
        ("sessions.jsonl, line 8, field session", "'late' was there before in 'ann'"),
        ("questions.jsonl, line 1, field text", "missing"),
        ("questions.jsonl, line 2, field asked", "did you mean 'asked_on'?"),
        ("questions.jsonl, line 4, field abstain", "boolean"),
        ("questions.jsonl, line 5, field corpus", "no session has the corpus 'nobody'"),
        ("questions.jsonl, line 5, field question", "'q2' was there before"),
    ]:
        assert any(f.startswith(f"{place}:") and words in f for f in faults), (place, faults)
    assert len(faults) == 14
    with pytest.raises(Faults, match="14 faults"):
        Custom(path=path).load()
    assert validate(path / "sessions.jsonl") == faults


def test_evidence_must_exist_and_be_said_in_time(tmp_path):
    questions = [{**QUESTIONS[0], "asked_on": "2023-05-20", "evidence": [
        {"session": "early", "turn": 2}, {"session": "erly"}, {"session": "late"}]}]
    faults = validate(folder(tmp_path, SESSIONS, questions))
    assert [f.split(": ")[0] for f in faults] == [
        f"questions.jsonl, line 1, field evidence[{i}].{name}" for i, name in enumerate(["turn", "session", "session"])]
    assert "has 2 turns" in faults[0]
    assert "after the question" in faults[2]


def test_without_questions_the_sessions_are_read(tmp_path):
    data = Custom(path=folder(tmp_path, SESSIONS, QUESTIONS))
    with_questions = data.identity()
    (tmp_path / "questions.jsonl").unlink()
    assert validate(tmp_path) == []
    assert data.load()["turns"].height == 3
    assert data.load()["questions"].height == 0
    assert "There are no questions, so nothing is measured" in data.notes()[0]
    assert data.identity() != with_questions
    (tmp_path / "questions.jsonl").touch()
    assert validate(tmp_path) == ["questions.jsonl: there is no line in it"]


def test_a_session_may_have_no_date_and_stands_first(tmp_path):
    undated = {**SESSIONS[0], "session": "undated", "said_on": None}
    tables = Custom(path=folder(tmp_path, [*SESSIONS, undated], QUESTIONS)).load()
    assert tables["sessions"].filter(corpus=0)["said_on"].to_list() == [
        None, datetime(2023, 5, 20), datetime(2023, 5, 21, 8)]
    assert tables["questions"]["asked_on"].to_list()[1] == datetime(2023, 5, 21, 8)
    tables = Custom(path=folder(tmp_path, [undated], [{**QUESTIONS[1]}])).load()
    assert tables["questions"]["asked_on"].to_list() == [None]


@pytest.mark.parametrize("separator", ["\u2028", "\x0b", "\x85"])
def test_a_line_separator_inside_a_text_ends_no_line(tmp_path, separator):
    turn = {"role": "user", "text": f"one{separator}two"}
    line = json.dumps({**SESSIONS[0], "turns": [turn]}, ensure_ascii=separator == "\x0b")
    folder(tmp_path, [line], [])
    (tmp_path / "questions.jsonl").unlink()
    assert validate(tmp_path) == []
    assert turn["text"] in Custom(path=tmp_path).load()["texts"]["text"].to_list()


def test_a_line_that_is_nested_too_deeply_is_named(tmp_path):
    """The parser's own end would be a RecursionError at 200 levels or more."""
    good = json.dumps({"corpus": "ann", "session": "s1", "said_on": None, "turns": []})
    (tmp_path / "sessions.jsonl").write_text(good + "\n" + "[" * 200_000 + "\n")
    (fault,) = validate(tmp_path)
    assert fault.startswith("sessions.jsonl, line 2: lists and objects are nested more than 100 levels deep")


def test_missing_empty_and_undecodable_files(tmp_path):
    assert [f.split(":")[0] for f in validate(tmp_path)] == ["sessions.jsonl"]
    folder(tmp_path, [], QUESTIONS)
    assert validate(tmp_path)[0] == "sessions.jsonl: there is no line in it"
    (tmp_path / "sessions.jsonl").write_bytes(b"\xff\xfe")
    assert "not UTF-8" in validate(tmp_path)[0]
    with pytest.raises(MemlabError, match=r"sessions\.jsonl and questions\.jsonl"):
        Custom()
    with pytest.raises(MemlabError, match="is no folder"):
        Custom(path=str(tmp_path / "no"))


STOP = "…and reading stopped after 1,000 faults"


def test_reading_stops_after_a_thousand_faults(tmp_path):
    """A file of another kind has a fault on each line; so many help nobody, and their texts take memory."""
    folder(tmp_path, ["{", *["1"] * 999], QUESTIONS)
    (tmp_path / "questions.jsonl").unlink()
    assert len(validate(tmp_path)) == 1000  # all of them, and no more were there
    folder(tmp_path, ["1"] * 1001, QUESTIONS)
    faults = validate(tmp_path)
    assert faults[-1] == STOP
    assert len(faults) == 1001
    assert faults[999].startswith("sessions.jsonl, line 1000: ")
    with pytest.raises(Faults, match="reading stopped after 1,000 faults") as stop:
        Custom(path=tmp_path).load()
    assert stop.value.faults == faults


def test_faults_of_both_files_count_together(tmp_path):
    folder(tmp_path, ["1"] * 600, ["1"] * 600)
    faults = validate(tmp_path)
    assert [fault.partition(":")[0] for fault in faults[598:602]] == [
        f"{name}.jsonl, line {line}" for name, line in
        [("sessions", 599), ("sessions", 600), ("questions", 1), ("questions", 2)]]
    assert faults[1000:] == [STOP]


@pytest.mark.parametrize("kind", ["evidence", "corpus", "twice"])
def test_faults_between_lines_are_as_few(tmp_path, kind):
    question = {"evidence": {**QUESTIONS[0], "evidence": [{"session": "no"}] * 2000}, "corpus": {**QUESTIONS[1],
                "corpus": "no"}, "twice": QUESTIONS[1]}[kind]
    faults = validate(folder(tmp_path, SESSIONS, [question] * (1 if kind == "evidence" else 1500)))
    assert len(faults) == 1001
    assert faults[-1] == STOP


@pytest.mark.slow
def test_a_line_of_too_many_values_is_named(tmp_path):
    turn = '{"role": "user", "text": "x"}'  # 3 values: an object, a comma in it and one after it

    def line(session: str, turns: int) -> str:
        inner = ", ".join([turn] * turns)
        return f'{{"corpus": "ann", "session": "{session}", "said_on": null, "turns": [{inner}]}}'

    folder(tmp_path, [line("s1", 166_665), line("s2", 166_665)], [])
    (tmp_path / "questions.jsonl").unlink()
    assert validate(tmp_path) == []  # 5 + 3 x 166,665 - 1 = 499,999 values: the limit is for each line
    folder(tmp_path, [line("s1", 1), line("s2", 166_667)], [])
    (fault,) = [fault for fault in validate(tmp_path) if fault.startswith("sessions")]
    assert fault.startswith("sessions.jsonl, line 2: it holds more than 500,000 values")
    assert "Fix: write it as several sessions" in fault


def calls(sessions: int, folder_: Path) -> int:
    """Return the calls of Python functions, and the values that generators yield, while a folder is loaded."""
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    folder_.mkdir()
    lines = [{"corpus": f"c{n % 3}", "session": f"s{n}", "said_on": "2023-05-20",
              "turns": [{"role": "user", "text": f"t{n}"}]} for n in range(sessions)]
    asked = [{"question": f"q{n}", "corpus": f"c{n % 3}", "text": "Which?",
              "evidence": [{"session": f"s{n}", "turn": 0}]} for n in range(sessions)]
    data = Custom(path=folder(folder_, lines, asked))
    sys.setprofile(profile)
    try:
        data.load()
    finally:
        sys.setprofile(None)
    return count


def test_the_work_grows_as_the_folder_does(tmp_path):
    few, many = calls(150, tmp_path / "few"), calls(600, tmp_path / "many")
    assert 2 < many / few < 5
