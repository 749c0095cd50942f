"""The SQLite database of a live memory, with an exclusive lock, and deleted rows erased from the file.

While a memory is open, its folder is locked (``memlab.memory.lock``), and ``memory.db-wal`` next to the database holds
the
latest commits; closing, and the next opening after a kill, moves them into the database.
Deleted rows leave old copies in the pages of a table, so the whole file is written anew after them (``clear``); until
that is done, the database says so, and the next opening does it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from memlab.memory.lock import FolderLock, inode
from memlab.support.errors import MemlabError
from memlab.support.files import TEMPORARY, atomic_dir, disk_faults, make_folder

FILE = "memory.db"
FORMAT = 9
"""Format of the tables; a database of another format is refused."""

_APPLICATION = 0x6D656D6C  # "meml"
_SEGMENTS = "store/*/*/*.segment"
_INHERITED: list[sqlite3.Connection] = []
_TABLES = """
CREATE TABLE counter (next INTEGER NOT NULL, sessions INTEGER NOT NULL, digest INTEGER NOT NULL, cleared INTEGER);
CREATE TABLE sessions (id INTEGER PRIMARY KEY, content TEXT NOT NULL, digest BLOB NOT NULL);
CREATE TABLE accesses (session INTEGER, turn INTEGER, times INTEGER NOT NULL, last TEXT NOT NULL,
                       PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE votes (vote INTEGER, session INTEGER, turn INTEGER, useful INTEGER NOT NULL, day TEXT NOT NULL,
                    PRIMARY KEY (vote, session, turn)) WITHOUT ROWID;
CREATE TABLE forgotten (session BLOB, turn INTEGER, PRIMARY KEY (session, turn)) WITHOUT ROWID;
CREATE TABLE forgotten_key (key BLOB NOT NULL);
INSERT INTO counter VALUES (0, 0, 0, 1);
"""


def refuse_inside(place: Path, folder: Path) -> None:
    """Raise MemlabError for a place in the folder of a memory, where a copy would outlive what is forgotten."""
    if place.resolve().is_relative_to(folder.resolve()):
        raise MemlabError("this is in the folder of the memory, where a copy would outlive what is forgotten",
                          where=str(place), fix="give a place outside of it")


def is_memory(folder: Path) -> bool:
    """Return whether a folder holds a live memory, of any format."""
    return (folder / FILE).is_file()


class Database:
    """One folder's database, held by one process from ``open`` to ``close``; MemlabError says if it cannot be used."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path = folder, folder / FILE
        self._process = os.getpid()
        self._lock = threading.RLock()  # the connection is in one transaction at a time
        self._connection: sqlite3.Connection | None = None
        self._files: dict[Path, tuple[int, int]] = {}  # the inodes that are open
        self._folder_lock = FolderLock(folder)

    def open(self) -> None:
        """Lock the database, which is made if missing, and finish what a killed process has begun."""
        self._process = os.getpid()
        with self.errors():
            self._make_folder()
            self._folder_lock.take()
            try:
                self._connect()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Move all commits into the database, release it, and remove the log file next to it."""
        connection, self._connection = self._connection, None
        self._files = {}
        if connection is not None and self._process != os.getpid():
            _INHERITED.append(connection)  # closing it here would take the files from the process that forked this one
            return
        if connection is not None:
            with suppress(sqlite3.Error):  # what is left in the file beside it is read at the next opening
                connection.close()
        self._folder_lock.release()

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        with self._lock, self.errors():
            return self._open().execute(query, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise MemlabError if the block cannot read the rows of a query: memlab did not write them."""
        try:
            yield
        except (TypeError, ValueError, LookupError) as error:
            raise self.damage_error() from error

    def run(self, statement: str, *rows: tuple[object, ...]) -> None:
        """Run a statement of the current transaction with each row of values."""
        with self._lock, self.errors():
            self._open().executemany(statement, rows)

    def delete_turns(self, table: Literal["accesses", "votes"], turns: Mapping[int, Iterable[int]]) -> None:
        """Delete the rows of some turns by session in the current transaction."""
        self.run(f"DELETE FROM {table} WHERE session = ? AND turn = ?",  # noqa: S608  (a constant)
                 *((session, turn) for session, some in turns.items() for turn in some))

    @contextmanager
    def transaction(self, durable: bool = True) -> Iterator[None]:
        """Commit what the block changes at its end, or nothing of it if it raises; other threads wait meanwhile.

        A commit that is not durable survives a kill; a power failure may lose it, and none before the last durable one.
        """
        connection = self._open()
        with self._lock, self.errors():
            connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._check_files()
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def note_forgotten(self) -> None:
        """Within a transaction, note that ``clear`` is to follow."""
        self.run("UPDATE counter SET cleared = 0", ())

    def is_cleared(self) -> bool:
        """Return whether deleted content is erased: a killed process may not have come to ``clear``."""
        return self.rows("SELECT cleared FROM counter") == [(1,)]

    def clear(self) -> None:
        """Erase deleted rows from the disk: from the database and its log file."""
        with self._lock, self.errors():
            self._open().execute("PRAGMA synchronous = FULL")
            self._open().execute("VACUUM")
            self._checkpoint()
            with self.transaction():
                self.run("UPDATE counter SET cleared = 1", ())

    def backup(self, folder: Path) -> None:
        """Copy the last commit, and the files of the store but for indexes, to a new folder.

        Vectors are left out while some of them may belong to what is forgotten (``is_cleared``).
        """
        with self.errors("the backup cannot be written", folder):
            refuse_inside(folder, self.folder)
            if folder.exists() and any(folder.iterdir()):
                raise MemlabError("a backup replaces nothing", where=str(folder),
                                  fix="give a new folder, or an empty one")
            with atomic_dir(folder) as temporary:
                temporary.chmod(0o700)
                for path in sorted(self.folder.glob("store/*/*/*") if self.is_cleared() else ()):
                    copy = temporary / path.relative_to(self.folder)
                    if path.is_file() and not path.name.endswith(TEMPORARY):
                        make_folder(copy.parent)
                        with suppress(FileNotFoundError):  # a question has just merged it: its vectors are made again
                            shutil.copyfile(path, copy)
                            copy.chmod(0o600)
                (temporary / FILE).touch(0o600)
                with self._lock:  # unlike SQLite's own backup, without what deleted rows left in its pages
                    self._open().execute("VACUUM INTO CAST(? AS TEXT)", (os.fsencode((temporary / FILE).absolute()),))

    def _checkpoint(self) -> None:
        """Move all commits into the database, and empty its log file."""
        busy, *_ = self._open().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise MemlabError("deleted rows could not be removed from the disk", where=str(self.path),
                              fix="close the memory, and whatever else reads this file")

    @contextmanager
    def errors(self, problem: str = "the memory cannot be used", where: Path | None = None) -> Iterator[None]:
        """Raise errors of SQLite and of the system as MemlabError."""
        place = where or self.folder
        try:
            with disk_faults(place, problem):
                yield
        except sqlite3.Error as error:
            raise self._error(error, problem, place) from error
        except UnicodeDecodeError as error:  # SQLite's message about a damaged table
            raise self.damage_error() from error

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            raise MemlabError("the memory is closed", where=str(self.folder))
        return self._connection

    def _connect(self) -> None:
        self._refuse_emptied()
        if not self.path.exists():
            self.path.touch(0o600)  # SQLite gives the file beside it the same mode
        connection = sqlite3.connect(self.path.absolute(), timeout=0, isolation_level=None, check_same_thread=False)
        self._connection = connection
        connection.text_factory = lambda text: text.decode("utf-8", "replace")  # a damaged row fails its digest
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA temp_store = MEMORY")  # texts are in no file outside the folder
        (application,), (version,) = (connection.execute(f"PRAGMA {name}").fetchone()
                                      for name in ("application_id", "user_version"))
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and application != _APPLICATION:
            raise MemlabError(f"{FILE} is no live memory", where=str(self.folder), fix="choose another folder")
        if tables and version != FORMAT:
            raise MemlabError(f"this memory is of format {version}, and this memlab reads format {FORMAT} only",
                              where=str(self.folder),
                              fix="use the memlab that wrote it, or add its sessions to a new folder")
        if [row for row, in connection.execute("PRAGMA quick_check(1)")] != ["ok"]:
            raise self.damage_error()
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        self._take(connection, new=not tables)

    def _take(self, connection: sqlite3.Connection, new: bool) -> None:
        """Lock the database, make its tables if it is new, and note its inode."""
        connection.execute("BEGIN EXCLUSIVE")
        self._files[self.path] = inode(self.path)
        if new:
            for statement in _TABLES.split(";"):
                connection.execute(statement)
            connection.execute("INSERT INTO forgotten_key VALUES (?)", (secrets.token_bytes(32),))
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("UPDATE counter SET next = next")  # so that the file beside it exists
        connection.execute("COMMIT")
        self._files[self._beside()] = inode(self._beside())
        self._checkpoint()

    def _make_folder(self) -> None:
        """Make the folder; a new one, and one that was empty, is closed to other users."""
        if not self.folder.is_dir():
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not any(self.folder.iterdir()):
            with suppress(OSError):  # the folder of somebody else, who lets others write there
                self.folder.chmod(0o700)

    def _refuse_emptied(self) -> None:
        """Raise MemlabError if the database is gone, but vectors of its sessions are there."""
        if (not self.path.exists() or not self.path.stat().st_size) and any(self.folder.glob(_SEGMENTS)):
            raise MemlabError(f"{FILE} is empty or gone, but the vectors of its sessions are there",
                              where=str(self.folder), fix=f"bring {FILE} back from a copy, or delete the folder store")

    def _check_files(self) -> None:
        for path, number in self._files.items():
            if not path.exists() or inode(path) != number:
                raise MemlabError(f"{path.name} was deleted or replaced while the memory was open; nothing was changed",
                                  where=str(self.folder), fix="open the memory again, and leave its files alone")

    def _beside(self) -> Path:
        return self.path.with_name(f"{self.path.name}-wal")

    def damage_error(self) -> MemlabError:
        """Return the error that the tables hold what memlab does not write."""
        return MemlabError(f"{FILE} is damaged, or was copied while the memory was in use", where=str(self.folder),
                           fix="bring it back from a copy (Memory.backup makes one at any time)")

    def _error(self, error: sqlite3.Error, problem: str, place: Path) -> MemlabError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_BUSY"):
            return self._folder_lock.in_use()
        if name == "SQLITE_NOTADB":
            return MemlabError(f"{FILE} is no live memory", where=str(self.folder), fix="choose another folder")
        if name.startswith("SQLITE_CORRUPT") or str(error).startswith("no such table"):
            return self.damage_error()
        return MemlabError(f"{problem}: {error} (what was added before is still there)", where=str(place),
                           fix="check its permissions, or free some space there")
