"""memlab memory check: what a memory that no other process uses holds, and what of it is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from memlab.__main__ import main
from memlab.memory.database import FILE
from memlab.memory.memory import Memory, Session
from tests.memory.test_faults import PIPELINE, filled


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


def change_a_session(folder: Path) -> None:
    connection = sqlite3.connect(folder / FILE)
    with connection:
        connection.execute("UPDATE sessions SET content = content || ' ' WHERE id = 1")
    connection.close()


def test_check_counts_what_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Memory(folder, PIPELINE) as memory:
        memory.update("kept", Session("2023-06-05", [("user", "I live in Rome."), ("assistant", "I see.")]))
        memory.deprecate("kept", [1])
        memory.feedback({"session": "secret", "turns": [0]}, useful=True, now="2023-06-06")
    assert main(["memory", "check", f"memory={folder}"]) == 0
    first, second, *stored, last = capsys.readouterr().out.splitlines()
    assert first == f"{folder}: 4 sessions, 5 turns"
    assert second == "earlier versions: 1; deprecated turns: 1; votes: 1"
    assert [(line.split()[0], line.partition(" rows")[0].split()[-1]) for line in stored] == [
        ("tokens", "5"), ("vectors", "5")]
    assert last == "all of it is whole"


DAMAGES: dict[str, Callable[[Path], None]] = {
    "session 1: its text": change_a_session,
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


@pytest.mark.parametrize("words", [["check"], ["check", "memory={none}"], ["move", "memory={ann}"]])
def test_a_wrong_command_line_is_refused(folder: Path, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    places = {"ann": folder, "none": folder.parent / "none"}
    with pytest.raises(SystemExit) as ended:
        main(["memory", *(word.format(**places) for word in words)])
    assert ended.value.code == 2
    assert "memlab memory: error: " in capsys.readouterr().err
    assert not (folder.parent / "none").exists()
