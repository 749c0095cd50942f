"""memlab memory: copies, checks and exports of a memory that no other process uses."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.data.custom import Custom
from memlab.live.database import FILE
from memlab.live.store import LiveStore
from memlab.memory import Memory, Session, Turn
from tests.live.test_faults import PIPELINE, SECRET, WORDS, filled
from tests.test_memory_forgotten import everything


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(tmp_path / "ann")
    return tmp_path / "ann"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def change(folder: Path, statement: str) -> None:
    connection = sqlite3.connect(folder / FILE)
    with connection:
        connection.execute(statement)
    connection.close()


def test_check_counts_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["memory", "check", f"memory={folder}"]) == 0
    first, *stored, last = capsys.readouterr().out.splitlines()
    assert first == f"{folder}: 3 sessions, 3 turns"
    assert [line.partition(" rows")[0].split()[0] for line in stored] == ["tokens", "vectors"]
    assert [line.partition(" rows")[0].split()[-1] for line in stored] == ["3", "3"]
    assert last == "all of it is whole"


DAMAGES: dict[str, Callable[[Path], None]] = {
    "session 1: its text": lambda folder: change(folder, "UPDATE sessions SET content = content || ' ' WHERE id = 1"),
    "store/tokens/": lambda folder: flip(next(folder.glob("store/tokens/*/*.segment")))}


@pytest.mark.parametrize("name", DAMAGES)
def test_check_names_each_damage_and_changes_nothing(folder: Path, name: str, capsys: pytest.CaptureFixture[str]
                                                     ) -> None:
    DAMAGES[name](folder)
    files = contents(folder)
    for _ in range(2):
        assert main(["memory", "check", f"memory={folder}"]) == 1
        assert f"\ndamaged: {name}" in capsys.readouterr().out
    assert contents(folder).keys() == files.keys()
    assert all(content == files[file] for file, content in contents(folder).items() if file != FILE)


def test_versions_deprecated_turns_and_votes_are_counted_and_copied_and_an_export_holds_what_is_valid(
        folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Memory(folder, PIPELINE) as memory:
        memory.update("kept", Session("2023-06-05", [("user", "I live in Rome."), ("assistant", "I see.")]))
        memory.deprecate("kept", [1])
        memory.deprecate("also kept")
        memory.feedback({"session": "secret", "turns": [0]}, useful=True, now="2023-06-06")
        versions = memory.list(versions=True)
    assert main(["memory", "check", f"memory={folder}"]) == 0
    counted = "4 sessions, 5 turns\nearlier versions: 1; deprecated turns: 2; votes: 1\n"
    assert capsys.readouterr().out.startswith(f"{folder}: {counted}")
    assert main(["memory", "backup", f"memory={folder}", f"out={tmp_path / 'copy'}"]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'copy'}: {counted}")
    with Memory(tmp_path / "copy", PIPELINE) as memory:
        assert memory.list(versions=True).equals(versions)
    assert main(["memory", "export", f"memory={folder}", "out=-"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["session"], [turn["text"] for turn in line["turns"]]) for line in lines] == [
        ("secret", [SECRET]), ("kept", ["I live in Rome."])]


def test_a_backup_of_what_was_killed_while_it_forgot_holds_nothing_of_it(
        folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    memory = Memory(folder, PIPELINE)
    with monkeypatch.context() as patch:
        patch.setattr(LiveStore, "keep", None)  # fails right behind the commit
        with pytest.raises(TypeError):
            memory.forget("secret")
    vectors = {WORDS.vector(text).tobytes() for text in (SECRET, f"user: {SECRET}")}
    assert any(vector in everything(folder) for vector in vectors)
    assert main(["memory", "backup", f"memory={folder}", f"out={tmp_path / 'copy'}"]) == 0
    assert "2 sessions, 2 turns\nwhat was forgotten last is not erased yet" in capsys.readouterr().out
    assert not any(part in everything(tmp_path / "copy") for part in (SECRET.encode(), *vectors))
    assert not list((tmp_path / "copy").rglob("*.segment"))
    with Memory(tmp_path / "copy", PIPELINE) as memory:
        assert set(memory.list()["name"]) == {"kept", "also kept"}


def test_a_memory_with_a_damaged_session_is_not_copied_and_not_changed(folder: Path, tmp_path: Path,
                                                                       capsys: pytest.CaptureFixture[str]) -> None:
    DAMAGES["session 1: its text"](folder)
    assert main(["memory", "backup", f"memory={folder}", f"out={tmp_path / 'copy'}"]) == 1
    assert "session 1: its text does not match its digest" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()
    assert main(["memory", "export", f"memory={folder}", "out=-"]) == 1
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert "session 1 is damaged and left out" in err
    assert SECRET.encode() in (folder / FILE).read_bytes()


@pytest.mark.parametrize("words", [["check"], ["check", "memory={ann}", "out=x"], ["backup", "memory={ann}"],
                                   ["check", "memory={none}"]])
def test_a_wrong_command_line_is_refused(folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    places = {"ann": folder, "none": folder.parent / "none"}
    with pytest.raises(SystemExit) as ended:
        main(["memory", *(word.format(**places) for word in words)])
    assert ended.value.code == 2
    assert "memlab memory: error: " in capsys.readouterr().err
    assert not (folder.parent / "none").exists()


def test_an_export_is_read_as_data(tmp_path: Path) -> None:
    texts = ["a\nb\x7f\x1b[31m\u2028 sk-12345678901234567890", "東京 \"x\""]  # as it is, though it looks like a key
    with Memory(tmp_path / "ann") as memory:
        memory.add(Session("2023-05-20T18:30+02:00", [Turn("user", texts[0], "Zoë"), Turn("assistant", texts[1])], "s"))
        memory.add(Session(None, [("user", "one"), ("user", "two")]))
        memory.forget(1, [0])
        memory.add(Session("2023-05-21", [("user", "Hi")], "session 1"))
    assert main(["memory", "export", f"memory={tmp_path / 'ann'}", f"out={tmp_path / 'sessions.jsonl'}"]) == 0
    assert stat.S_IMODE((tmp_path / "sessions.jsonl").stat().st_mode) == 0o600
    tables = Custom(path=tmp_path).load()
    assert tables["sessions"].height == 3
    assert set(tables["texts"]["text"]) >= {*texts, "two", "Hi"}
    rows = [json.loads(line) for line in (tmp_path / "sessions.jsonl").read_text("utf-8").splitlines()]
    assert [row["session"] for row in rows] == ["s", "session 1 (2)", "session 1"]
    assert [row.get("named", True) for row in rows] == [True, False, True]
    assert rows[0]["turns"][0] == {"role": "user", "speaker": "Zoë", "text": texts[0]}
