"""The database of a live memory: whole transactions or none, one holder, and nothing left of deleted rows."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
from pathlib import Path

import pytest

from memlab.errors import MemlabError
from memlab.live.database import FILE, FORMAT, Database
from memlab.live.sessions import Entry, Session, SessionRows


def entry(number: int, text: str = "hello") -> Entry:
    turns = [("user", text), ("assistant", "Hi! \u2028é\n")]
    return Entry.new(number, Session("2023-05-20T18:30", turns, f"s{number}"))


def append(database: Database, *entries: Entry) -> None:
    with database.transaction():
        SessionRows(database).write(*entries)


def filled(folder: Path, count: int = 3) -> None:
    database = Database(folder)
    database.open()
    for number in range(count):
        append(database, entry(number))
    database.close()


def opened(folder: Path) -> list[Entry]:
    database = Database(folder)
    try:
        database.open()
        return SessionRows(database).load()
    finally:
        database.close()


def test_what_is_written_is_read_again_and_one_file_is_left(tmp_path: Path) -> None:
    filled(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert opened(tmp_path) == [entry(0), entry(1), entry(2)]


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)
    database = Database(tmp_path)
    database.open()

    def fail() -> None:
        with database.transaction():
            SessionRows(database).replace({0: None})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    database.close()
    assert len(opened(tmp_path)) == 3


def test_forgotten_text_leaves_the_file_and_the_file_shrinks(tmp_path: Path) -> None:
    filled(tmp_path)
    database = Database(tmp_path)
    database.open()
    small = (tmp_path / FILE).stat().st_size
    for number in range(3, 60):
        append(database, entry(number, f"zebrafish {number} " * 500))
    assert b"zebrafish 7 " in b"".join(path.read_bytes() for path in database.folder.iterdir())
    with database.transaction():
        SessionRows(database).replace(dict.fromkeys(range(3, 60)))
    database.clear()
    database.close()
    assert b"zebrafish" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert (tmp_path / FILE).stat().st_size <= small + 8192  # pages of 4096 bytes
    assert opened(tmp_path) == [entry(0), entry(1), entry(2)]


def test_a_damaged_session_costs_no_other(tmp_path: Path) -> None:
    filled(tmp_path)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole.replace(b'"s1"', b'"s7"'))
    with pytest.warns(UserWarning, match="session 1 is damaged"):
        assert opened(tmp_path) == [entry(0), entry(2)]
    assert opened(tmp_path) == [entry(0), entry(2)]  # without a warning: it was deleted


@pytest.mark.parametrize("content", [b"x" * 5000, b"[]"])
def test_a_file_of_another_kind_is_left_alone(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(MemlabError, match="memory.db is no live memory. Fix: choose another folder"):
        opened(tmp_path)
    assert (tmp_path / FILE).read_bytes() == content


def test_the_database_of_another_program_or_format_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("CREATE TABLE birds (name)")
    connection.commit()
    with pytest.raises(MemlabError, match="memory.db is no live memory"):
        opened(tmp_path)
    connection.execute(f"PRAGMA application_id = {0x6D656D6C}")
    connection.close()


@pytest.mark.parametrize("number", [2, FORMAT - 1, FORMAT + 1])
def test_a_database_of_another_format_is_left_as_it_is(tmp_path: Path, number: int) -> None:
    filled(tmp_path)
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    before = (tmp_path / FILE).read_bytes()
    for _ in range(2):
        with pytest.raises(MemlabError, match=f"of format {number}, and this memlab reads format {FORMAT}"):
            opened(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {FILE: before}


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    filled(tmp_path, 200)
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole[:8192] + b"\xff" * 4096 + whole[12288:])
    with pytest.raises(MemlabError, match="memory.db is damaged, or was copied .*. Fix: bring it back from a copy"):
        opened(tmp_path)


@pytest.mark.parametrize("name", ["store/vectors/a/b.segment", "store/tokens/a/b.segment"])
def test_an_emptied_database_beside_vectors_is_no_new_memory(tmp_path: Path, name: str) -> None:
    filled(tmp_path)
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(bytes(32))
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(MemlabError, match="memory.db is empty or gone, but the vectors"):
        opened(tmp_path)


def test_the_lock_names_its_holder_and_ends_with_it(tmp_path: Path) -> None:
    first, second = Database(tmp_path), Database(tmp_path)
    first.open()
    with pytest.raises(MemlabError, match=rf"in use by process {os.getpid()} on .*one at a time"):
        second.open()
    child = os.fork()
    if not child:  # pragma: no cover - the forked process, which must not take the database from its parent
        first.close()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    append(first, entry(0))
    first.close()
    second.open()
    second.close()


@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal"])
def test_a_deleted_file_stops_commits(tmp_path: Path, name: str) -> None:
    database = Database(tmp_path)
    database.open()
    append(database, entry(0))
    (tmp_path / name).unlink()
    with pytest.raises(MemlabError, match=f"{name} was deleted or replaced while the memory was open"):
        append(database, entry(1))
    database.close()


def test_a_full_disk_is_told_and_leaves_what_was_there(tmp_path: Path) -> None:
    filled(tmp_path)
    database = Database(tmp_path)
    database.open()
    before = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50, before[0][1]))
    try:
        with pytest.raises(MemlabError, match="the memory cannot be used: the .*finished work is kept"):
            append(database, entry(3, "x" * 500))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before[0])
        signal.signal(signal.SIGXFSZ, before[1])
    assert len(SessionRows(database).load()) == 3
    append(database, entry(3))
    database.close()
    assert len(opened(tmp_path)) == 4


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MemlabError, match="a file is there, where a folder is needed"):
        opened(tmp_path / "file" / "folder")


@pytest.mark.parametrize("changes", [{"turns": " "}, {"turns": 3}, {"turns": [["0", "user", None, "Hi"]]}, {"name": 5},
                                     {"turns": [[0, "user"]]}, {"id": "0"}, {"id": 2**70}, {"said_on": []},
                                     {"fields": []}, {"fields": {"user": 5}}, {"fields": {"name": "x"}},
                                     {"metadata": {"x": 2**70}}, {"metadata": 5}])
def test_a_row_of_another_form_is_refused(changes: dict[str, object]) -> None:
    row = entry(0).row()
    assert Entry.of_row(row) == entry(0)
    with pytest.raises(MemlabError):
        Entry.of_row({**row, **changes})
    with pytest.raises(MemlabError):
        Entry.of_row({"turns": row["turns"]})
