"""The database of a live memory: whole transactions or none, one holder, and nothing left of deleted rows."""

from __future__ import annotations

import resource
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memlab.memory.database import FILE, FORMAT, Database
from memlab.memory.memory import Memory
from memlab.memory.sessions import Entry, Session, SessionRows
from memlab.support.errors import MemlabError
from tests.small import lexical


def entry(number: int, text: str = "hello") -> Entry:
    turns = [("user", text), ("assistant", "Hi! \u2028é\n")]
    return Entry.new(number, Session("2023-05-20T18:30", turns, f"s{number}"))


def append(database: Database, *entries: Entry) -> None:
    with database.transaction():
        SessionRows(database).write(*entries)


@contextmanager
def held(folder: Path) -> Iterator[Database]:
    """The open database of a folder."""
    database = Database(folder)
    try:
        database.open()
        yield database
    finally:
        database.close()


def filled(folder: Path) -> None:
    with held(folder) as database:
        for number in range(3):
            append(database, entry(number))


def opened(folder: Path) -> list[Entry]:
    with held(folder) as database:
        return SessionRows(database).load()


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    filled(tmp_path)

    def fail() -> None:
        with held(tmp_path) as database, database.transaction():
            SessionRows(database).replace({0: None})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert len(opened(tmp_path)) == 3


def test_forgotten_text_leaves_the_file_and_the_file_shrinks(tmp_path: Path) -> None:
    filled(tmp_path)
    with held(tmp_path) as database:
        small = (tmp_path / FILE).stat().st_size
        for number in range(3, 60):
            append(database, entry(number, f"zebrafish {number} " * 500))
        assert b"zebrafish 7 " in b"".join(path.read_bytes() for path in database.folder.iterdir())
        with database.transaction():
            SessionRows(database).replace(dict.fromkeys(range(3, 60)))
        database.clear()
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


def test_the_database_of_another_program_or_format_is_left_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("CREATE TABLE birds (name)")
    connection.commit()
    with pytest.raises(MemlabError, match="memory.db is no live memory"):
        opened(tmp_path)
    connection.close()


def test_a_database_of_another_format_is_left_as_it_is(tmp_path: Path) -> None:
    filled(tmp_path)
    number = FORMAT - 1
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    before = (tmp_path / FILE).read_bytes()
    for _ in range(2):
        with pytest.raises(MemlabError, match=f"of format {number}, and this memlab reads format {FORMAT}"):
            opened(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {FILE: before}


def test_an_emptied_database_beside_vectors_is_no_new_memory(tmp_path: Path) -> None:
    filled(tmp_path)
    name = "store/vectors/a/b.segment"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(bytes(32))
    (tmp_path / FILE).write_bytes(b"")
    with pytest.raises(MemlabError, match="memory.db is empty or gone, but the vectors"):
        opened(tmp_path)


@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal"])
def test_a_deleted_file_stops_commits(database: Database, name: str) -> None:
    append(database, entry(0))
    (database.folder / name).unlink()
    with pytest.raises(MemlabError, match=f"{name} was deleted or replaced while the memory was open"):
        append(database, entry(1))


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


def test_a_backup_before_what_is_forgotten_is_erased_holds_no_vectors(tmp_path: Path) -> None:
    segment = tmp_path / "memory" / "store" / "vectors" / "a" / "b.segment"
    filled(tmp_path / "memory")
    with held(tmp_path / "memory") as database:
        segment.parent.mkdir(parents=True)
        segment.write_bytes(bytes(32))
        with database.transaction():
            SessionRows(database).replace({0: None})
        database.backup(tmp_path / "before")
        database.clear()
        database.backup(tmp_path / "after")
    assert [len(list((tmp_path / name).rglob("*.segment"))) for name in ("before", "after")] == [0, 1]
    assert opened(tmp_path / "before") == opened(tmp_path / "after") == [entry(1), entry(2)]


DAMAGE = """
DELETE FROM counter
UPDATE counter SET next = 'x'
UPDATE counter SET next = 0
UPDATE counter SET sessions = 5
UPDATE counter SET cleared = 'x'
UPDATE sessions SET id = id - 9
UPDATE sessions SET digest = 5
UPDATE sessions SET content = 5
DELETE FROM forgotten_key
DROP TABLE sessions
"""


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("damage", DAMAGE.strip().splitlines())
def test_a_value_of_another_kind_in_a_table_is_named_or_dropped(tmp_path: Path, damage: str) -> None:
    filled(tmp_path)
    connection = sqlite3.connect(tmp_path / FILE)
    with connection:
        connection.execute(damage)
    connection.close()
    try:
        with Memory(tmp_path, lexical()) as memory:
            number = memory.add(Session("2023-06-03", [("user", "I bought a tent.")]))
            memory.forget(number)
            assert number >= len(memory)
    except MemlabError as error:
        assert "memory.db is damaged" in str(error)  # noqa: PT017  (either outcome is right)
