"""The command: what it writes and prints, and that the folder is read by data=custom."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from pathlib import Path

import pytest

from memlab.commands.ask import AskCommand, answer
from memlab.commands.import_chats import main
from memlab.data.jsonl import read as read_folder
from tests.chat_exports import SAMPLES, T, conversation, node, write

(LISBON,) = SAMPLES["chatgpt"]["files"]["conversations.json"]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_export_becomes_a_folder_of_the_user_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"conversations.json": [LISBON]})
    assert main(["conversations.json"]) == 0
    printed = capsys.readouterr().out
    assert "conversations.json: ChatGPT export\n  1 session, 4 turns, 156 characters, from 2024-03-01" in printed
    assert "2 speakers: assistant 2, user 2" in printed
    assert "times are in UTC; --timezone changes it" in printed
    assert "messages of other branches left out (edited questions, repeated answers): 3" in printed
    assert "data=custom data.path=chats-chatgpt" in printed
    (session,) = read_folder(tmp_path / "chats-chatgpt").sessions
    assert (session.corpus, session.session, session.said_on) == (
        "chatgpt", "2024-03-01 Lisbon trip 🇵🇹", datetime(2024, 3, 1, 9, 40))
    assert [f"09:40 {t.role} {t.speaker}: {t.text}" for t in session.turns] == SAMPLES["chatgpt"]["turns"]


def test_a_later_export_adds_what_is_new_and_questions_cite_the_same_turns(tmp_path: Path,
                                                                           capsys: pytest.CaptureFixture[str]) -> None:
    start = [node("q", None, "user", "I start at Acme."), node("a", "q", "assistant", "Congrats", at=T + 10)]
    later = [*start, node("p", "a", "user", "I quit.", at=T + 20)]
    before = conversation("Zoo", node("z", None, "user", "I like zoos.", at=T - 60), current="z")
    write(tmp_path, {"a.json": [conversation("Job", *start, current="a"), before],
                     "b.json": [conversation("Acme", *later, current="p"), before,
                                conversation("Job", node("n", None, "user", "A bike.", at=T + 50), current="n")]})
    assert main(["a.json", "--out", "x", "--timezone", "Europe/Rome", "--corpus", "me"]) == 0
    cited = [{"session": "2024-03-01 Job", "turn": 0}]
    write(tmp_path, {"x/questions.jsonl": {"question": "1", "corpus": "me", "text": "Where?", "evidence": cited}})
    assert main(["b.json", "--out", "x"]) == 0
    assert ("added 1 new session, and 1 turn of 1 that went on; 1 unchanged, 3 in all: x/sessions.jsonl"
            in capsys.readouterr().out)
    content = read_folder(tmp_path / "x")
    assert not content.faults
    assert [(s.corpus, s.session, [t.text for t in s.turns]) for s in content.sessions] == [
        ("me", "2024-03-01 Zoo", ["I like zoos."]),
        ("me", "2024-03-01 Job", ["I start at Acme.", "Congrats", "I quit."]),
        ("me", "2024-03-01 Job (2)", ["A bike."])]
    assert main(["a.json", "--out", "x"]) == 0
    assert "unchanged (2 unchanged, 1 not in this export)" in capsys.readouterr().out


@pytest.mark.parametrize("option", ["--timezone=Asia/Tokyo", "--split=conversation", "--corpus=ann"])
def test_a_folder_keeps_the_settings_of_its_first_import(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                                         option: str) -> None:
    write(tmp_path, {"a.json": [LISBON]})
    assert main(["a.json", "--out", "x"]) == 0
    assert main(["a.json", "--out", "x", option]) == 1
    assert f"leave {option.partition('=')[0]} out, or give another --out, or --replace" in capsys.readouterr().err
    assert main(["a.json", "--out", "x", option, "--replace"]) == 0
    assert main(["a.json", "--out", "x"]) == 0
    assert "unchanged" in capsys.readouterr().out


@pytest.mark.parametrize(("files", "problem"), [
    ({"import.json": ""}, "memlab import did not write them"), ({"import.json": "[]"}, "did not write them"),
    ({"sessions.jsonl": "{"}, "line 1: Expecting"), ({"sessions.jsonl": b"\xff"}, "can't decode byte 0xff"),
    ({"sessions.jsonl": '{"corpus": "x", "session": "y", "turns": [1]}'}, "line 1: it is no session")])
def test_what_memlab_did_not_write_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str],
                                           files: dict[str, str | bytes], problem: str) -> None:
    write(tmp_path, {"a.json": [LISBON]})
    assert main(["a.json", "--out", "x"]) == 0
    write(tmp_path / "x", files)
    before = (tmp_path / "x/sessions.jsonl").read_bytes()
    assert main(["a.json", "--out", "x"]) == 1
    assert problem in capsys.readouterr().err
    assert (tmp_path / "x/sessions.jsonl").read_bytes() == before


@pytest.mark.parametrize("name", ["my chats", "a,b=[x]", "it's \"q\"", "${x}", "2024", "~"])
def test_the_next_line_works_as_it_is_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    write(tmp_path, {"a.json": [LISBON]})
    assert main(["a.json", f"--out={name}"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    prompt, command, verb, *words = shlex.split(line)
    assert (prompt, command, verb) == ("next:", "memlab", "ask")
    _, place = answer(AskCommand.of([*words, "search/dense=none", f"store={tmp_path / 'store'}"]))
    assert "chatgpt" in place


def test_options_reach_the_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (chat,) = SAMPLES["whatsapp"]["files"].values()
    write(tmp_path, {"chat.txt": chat.replace("31/12/2023", "02/01/2024")})
    words = "chat.txt --out x --corpus lake --date-order month-first --split conversation"
    assert main(words.split()) == 0
    (line,) = (tmp_path / "x" / "sessions.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["said_on"] == "2024-02-01T21:15"
    assert [json.loads(line)[field] for field in ("corpus", "room", "source")] == ["lake", "chat", "whatsapp"]
    assert "dates are read as month/day/year, as given" in capsys.readouterr().out


def test_a_conversation_is_cut_where_the_day_changes_in_the_user_s_time_zone(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    late = conversation("x", node("q", None, "user", "one", at=T + 13 * 3600), node("a", "q", "user", "two",
                        at=T + 15 * 3600), current="a")  # 22:40 and 00:40 UTC
    write(tmp_path, {"a.json": [late]})
    for zone, days in (("UTC", ["2024-03-01T22:40", "2024-03-02T00:40"]), ("America/New_York", ["2024-03-01T17:40"])):
        assert main(["a.json", "--out", "x", "--replace", "--timezone", zone]) == 0
        lines = (tmp_path / "x" / "sessions.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line)["said_on"] for line in lines] == days
    assert "from 1 conversation, cut at midnight (--split conversation cuts nowhere)" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "problem"), [
    (["none.json"], "no such file"), (["a.json", "--timezone", "Mars/Base"], "no time zone 'Mars/Base'"),
    (["a.json", "--corpus", " "], "a corpus is blank"), (["a.json", "--max-mb", "nan"], "a size in MB"),
    (["a.json"], "there is no message in it"), (["a.json", "--format", "x"], "there is no format 'x'"),
])
def test_faults_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str],
                                 problem: str) -> None:
    write(tmp_path, {"a.json": [{"role": "system", "content": "x"}]})
    assert main(words) == 1
    assert problem in capsys.readouterr().err
