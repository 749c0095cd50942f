"""The commands: what they print, their exit status, and that data cannot steer the terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memlab.commands.data import main
from memlab.data import benchmarks
from tests.chat_exports import json_lines
from tests.chat_exports import write as write_export
from tests.data.official_records import conversation, record
from tests.data.official_records import write as write_file


def write(path: Path, records: object) -> str:
    return str(write_file(path, records))


def test_list_names_the_benchmarks_and_where_they_are(memlab_home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (memlab_home / "data").mkdir()
    write(memlab_home / "data" / "locomo10.json", [])
    assert main(["list"]) == 0
    printed = capsys.readouterr().out
    assert f"here: {memlab_home}/data/locomo10.json" in printed
    assert "not here; memlab data fetch longmemeval_m" in printed
    assert "10 files; 10 not here; memlab data fetch realtalk" in printed
    assert "Apache-2.0, 10 files; 10 not here; memlab data fetch realmem" in printed
    assert "fetched by size: beam_100k, beam_500k, beam_1m, beam_10m" in printed
    (memlab_home / "data" / "realtalk").mkdir()
    for chat in benchmarks.CHATS:
        (memlab_home / "data" / "realtalk" / f"Chat_{chat}.json").touch()
    main(["list"])
    assert "10 files; all here" in capsys.readouterr().out


def test_check_tells_the_benchmark_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "l.json", [conversation()])
    for words in ([path], ["--path", path], [f"data.path={path}", "data=locomo"]):
        assert main(["check", *words]) == 0
        printed = capsys.readouterr().out
        assert "7 questions over 1 corpus, 3 sessions, 5 turns" in printed
        assert ": 2 (conv-1:3, conv-1:5)" in printed  # not scored in retrieval
        assert "no problem found" in printed
    for words, problem in (([], "no file or folder is named"), (["none.json"], "no such file or folder")):
        assert main(["check", *words]) == 1
        assert problem in capsys.readouterr().err


def test_check_tells_the_longmemeval_files_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", write(tmp_path / "s.json", [record()])]) == 0
    printed = capsys.readouterr().out
    assert "s.json: longmemeval_s\n" in printed
    assert "blank turns: 2" in printed
    assert "sessions whose id occurs twice in their haystack: 1" in printed
    assert "sessions stamped later than their question: 1" in printed
    oracle = record(answer_session_ids=["f1", "answer_1", "answer_2"])
    assert main(["check", write(tmp_path / "o.json", [oracle])]) == 0
    assert "o.json: longmemeval_oracle\n" in capsys.readouterr().out


def test_check_knows_the_time_zone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = {"corpus": "ann", "session": "s1", "said_on": "2025-05-20T23:30:00-07:00", "turns": []}
    folder = str(write_export(tmp_path / "me", {"sessions.jsonl": json_lines(session)}))
    for words, day in (([], 21), (["--timezone", "America/Los_Angeles"], 20), (["data.timezone=Asia/Tokyo"], 21)):
        assert main(["check", folder, *words]) == 0
        assert f"dates from 2025-05-{day} to 2025-05-{day}" in capsys.readouterr().out
    assert main(["check", folder, "--timezone", "rome"]) == 1
    assert "did you mean Europe/Rome" in capsys.readouterr().err


def test_check_counts_a_folder_of_the_user_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [{"role": "user", "text": "I adopted a cat."}, {"role": "assistant", "text": "Lovely!"}]
    session = {"corpus": "ann", "session": "s1", "said_on": "2023-05-20", "turns": turns}
    files: dict[str, object] = {"sessions.jsonl": json_lines(session, {**session, "session": "s2"})}
    folder = str(write_export(tmp_path / "me", files))
    assert main(["check", folder]) == 0
    printed = capsys.readouterr().out
    assert "0 questions over 1 corpus, 2 sessions, 4 turns (2 distinct), 46 characters" in printed
    assert "dates from 2023-05-20 to 2023-05-20" in printed
    assert "a run needs questions.jsonl" in printed
    question = {"question": "q", "corpus": "ann", "text": "Which pet?", "evidence": [{"session": "s1", "turn": 0}]}
    write_export(tmp_path / "me", {"questions.jsonl": json_lines(question)})
    assert main(["check", f"{folder}/sessions.jsonl"]) == 0
    printed = capsys.readouterr().out
    assert "1 question over 1 corpus, 2 sessions" in printed
    assert "evidence: 1 turn, and of 0 sessions alone; questions to decline: 0" in printed


@pytest.mark.parametrize("records", [[{"other": 1}], [], [{**conversation(), "qa": 3}]])
def test_check_fails_with_the_problem(tmp_path: Path, records: object, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", write(tmp_path / "x.json", records)]) == 1
    assert "problem: " in capsys.readouterr().out


def test_show_by_id_and_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "l.json", [conversation()])
    assert main(["show", "conv-1:1", "--path", path]) == 0
    by_id = capsys.readouterr().out
    assert "answer: Yes\n" in by_id
    assert "session 0 (session_1) of 2023-05-08 13:56:00, turn 0, Ann: Hello Bob" in by_id
    assert "[image: a lake]" in by_id
    assert main(["show", "1", "--path", path]) == 0
    assert capsys.readouterr().out == by_id
    assert main(["show", "4", "--path", path]) == 0
    assert "answer: (decline)" in capsys.readouterr().out
    assert main(["show", "3", "--path", path]) == 0
    assert "evidence: none that can be found" in capsys.readouterr().out


def test_show_of_an_id_that_consists_of_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "s.json", [record("a"), record("0", question="named 0")])
    assert main(["show", "0", "--data", "longmemeval_s", "--path", path]) == 0
    printed = capsys.readouterr().out
    assert "named 0" in printed
    assert "session 1 (answer_2) of 2023-05-20 02:21:00: the session as a whole" in printed


def test_show_of_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "l.json", [conversation()])
    assert main(["show", "conv-1:77", "--path", path]) == 1
    assert "did you mean 'conv-1:" in capsys.readouterr().err
    assert main(["show", "1", "--data", "locomos", "--path", path]) == 1
    assert "did you mean 'locomo'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.json.gz", "sessions.jsonl", "own/sessions.jsonl"])
def test_a_pipe_is_a_fault_and_not_waited_for(tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    assert main(["check", str(path.parent if name.startswith("own") else path)]) == 1
    printed = capsys.readouterr()
    assert "it is no plain file" in printed.out + printed.err
