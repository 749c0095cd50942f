"""The command: what it writes and prints, and that the folder is read by data=custom."""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo, reset_tzpath

import pytest

from memlab.ask import AskCommand, answer
from memlab.chats.__main__ import main
from memlab.data.jsonl import read as read_folder
from tests.chat_exports import write
from tests.test_chats_chatgpt import EXPECTED, LISBON, T, conversation, node
from tests.test_chats_whatsapp import ANDROID_24


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_an_export_becomes_a_folder_of_the_user_s_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"conversations.json": [LISBON]})
    assert main(["conversations.json"]) == 0
    printed = capsys.readouterr().out
    assert "conversations.json: ChatGPT export\n  1 sessions, 4 turns, 156 characters, from 2024-03-01" in printed
    assert "turns: assistant 2, user 2" in printed
    assert "times are in UTC; --timezone changes it" in printed
    assert "3 messages of other branches left out" in printed
    assert "data=custom data.path=chats-chatgpt" in printed
    (session,) = read_folder(tmp_path / "chats-chatgpt").sessions
    assert (session.corpus, session.session, session.said_on) == ("chatgpt", EXPECTED[0], datetime(2024, 3, 1, 9, 40))
    assert [(t.role, t.speaker, t.text) for t in session.turns] == EXPECTED[2]


def test_the_same_export_gives_the_same_bytes_and_others_are_kept(tmp_path: Path,
                                                                  capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"a.json": [LISBON], "b.json": [{**LISBON, "title": "Other"}]})
    assert main(["a.json", "--out", "x"]) == 0
    before = (tmp_path / "x" / "sessions.jsonl").read_bytes()
    assert main(["a.json", "--out", "x"]) == 0
    assert "unchanged: x/sessions.jsonl" in capsys.readouterr().out
    assert main(["b.json", "--out", "x"]) == 1
    assert "other sessions are there already" in capsys.readouterr().err
    assert (tmp_path / "x" / "sessions.jsonl").read_bytes() == before
    assert main(["b.json", "--out", "x", "--replace"]) == 0
    assert b"Other" in (tmp_path / "x" / "sessions.jsonl").read_bytes()


def test_options_reach_the_reader(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"chat.txt": ANDROID_24.replace("31/12/2023", "02/01/2024")})
    words = "chat.txt --out x --corpus lake --dates month-first --split conversation"
    assert main(words.split()) == 0
    (line,) = (tmp_path / "x" / "sessions.jsonl").read_text("utf-8").splitlines()
    assert json.loads(line)["said_on"] == "2024-02-01T21:15"
    assert json.loads(line)["corpus"] == "lake"
    assert "dates are read as month/day/year, as given" in capsys.readouterr().out


def test_a_search_sees_nothing_that_was_said_later_than_the_day_of_its_question(tmp_path: Path) -> None:
    chat = conversation("Job", node("q", None, "user", "My manager is Nina."),
                        node("a", "q", "assistant", "Noted: Nina."),
                        node("p", "a", "user", "My manager is Tomasz now.", at=T + 3 * 86400), current="p")
    write(tmp_path, {"conversations.json": [chat]})
    for words, visible in (([], {"Nina"}), (["--split", "auto"], {"Nina", "Tomasz"})):
        assert main(["conversations.json", "--out", "x", "--replace", *words]) == 0
        result, _ = answer(AskCommand.of([
            "data=custom", "data.path=x", "search/dense=none", f"store={tmp_path / 'store'}", "now=2024-03-01",
            "Who is my manager now?"]))
        shown = " ".join(result.results["text"])
        assert {name for name in ("Nina", "Tomasz") if name in shown} == visible


def test_a_conversation_is_cut_where_the_day_changes_in_the_user_s_time_zone(tmp_path: Path) -> None:
    late = conversation("x", node("q", None, "user", "one", at=T + 13 * 3600), node("a", "q", "user", "two",
                        at=T + 15 * 3600), current="a")  # 22:40 and 00:40 UTC
    write(tmp_path, {"a.json": [late]})
    for zone, days in (("UTC", ["2024-03-01T22:40", "2024-03-02T00:40"]), ("America/New_York", ["2024-03-01T17:40"])):
        assert main(["a.json", "--out", "x", "--replace", "--timezone", zone]) == 0
        lines = (tmp_path / "x" / "sessions.jsonl").read_text("utf-8").splitlines()
        assert [json.loads(line)["said_on"] for line in lines] == days


def test_utc_needs_no_database_of_time_zones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"a.json": [LISBON]})
    ZoneInfo.clear_cache()
    reset_tzpath(to=[])
    try:
        assert main(["a.json"]) == 0
        for name in {"tzdata", *(name for name in sys.modules if name.startswith("tzdata."))}:
            monkeypatch.setitem(sys.modules, name, None)
        assert main(["a.json", "--timezone", "Europe/Rome"]) == 1
        assert "pip install tzdata" in capsys.readouterr().err
    finally:
        reset_tzpath()
        ZoneInfo.clear_cache()


@pytest.mark.parametrize(("words", "problem"), [
    (["none.json"], "no such file"), (["a.json", "--timezone", "Mars/Base"], "no time zone 'Mars/Base'"),
    (["a.json", "--split", "week"], "give day, hours of silence"), (["a.json", "--max-mb", "nan"], "a size in MB"),
    (["a.json"], "there is no message in it"), (["a.json", "--format", "x"], "there is no format 'x'"),
])
def test_faults_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str],
                                 problem: str) -> None:
    write(tmp_path, {"a.json": [{"role": "system", "content": "x"}]})
    assert main(words) == 1
    assert problem in capsys.readouterr().err


def test_an_export_cannot_steer_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"a\x1b[2J.json": [{"role": "user", "content": "x", "name": "A\x1b]0;t\x07\ud83d"}], "b.txt": ""})
    assert main(["a\x1b[2J.json"]) == 0
    assert "\x1b" not in "".join(capsys.readouterr())


def test_the_name_of_a_corpus_is_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, {"a.json": [{"role": "user", "content": "x"}]})
    with pytest.raises(SystemExit):
        main(["a.json", "--corpus", "my\udcffchat"])
    assert "'my\\udcffchat' is no UTF-8" in capsys.readouterr().err
