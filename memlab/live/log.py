"""A live memory on disk: a file with one line per addition, and a lock that keeps other processes out.

Each line has a digest and is synced before the addition counts: if the process ends, at most the addition in progress
is lost. Damaged lines are moved to a file of their own, with a warning. Forgetting rewrites the file.
"""

from __future__ import annotations

import fcntl
import os
import socket
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path

from memlab.errors import MemlabError
from memlab.live.sessions import Entry
from memlab.runtime.checked_lines import decode, encode
from memlab.runtime.files import TEMPORARY, atomic_write, os_errors, write_all

FILE = "memory.jsonl"
LOCK = "lock"
DAMAGED = "damaged.jsonl"
_HEADER = {"memlab": "live memory", "format": 1}


class Log:
    """The lines of one folder, locked by one process at a time from ``open`` to ``close``.

    Every method raises MemlabError if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = None

    @staticmethod
    def there(folder: Path) -> bool:
        """Return whether a folder holds a live memory."""
        return (folder / FILE).is_file()

    def open(self) -> list[Entry]:
        """Lock the folder, which is made if missing, and return all entries, forgotten ones included."""
        with _errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            try:
                for leftover in self.folder.glob(f"*{TEMPORARY}"):  # may hold sessions forgotten since
                    leftover.unlink()
                if not self.there(self.folder):
                    self._append(encode(_HEADER))
                    _sync(self.folder)
                return self._read()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(self, entry: Entry) -> None:
        """Write an entry to the disk; if this raises, the file is unchanged."""
        with _errors(self.folder):
            self._append(encode(entry.row()))

    def replace(self, entries: Mapping[int, Entry]) -> None:
        """Rewrite the file with these entries, by number, in the place of the old ones."""
        def line(old: bytes) -> bytes:
            row = decode(old) or {}
            return encode(entries[row["id"]].row()) if row.get("id") in entries else old

        with _errors(self.folder):
            self._rewrite(line(old) for old in self._lines())

    def find(self, numbers: set[int]) -> list[Entry]:
        """Read the entries with these numbers."""
        rows = (decode(line) or {} for line in self._lines())
        return [Entry.of_row(row) for row in rows if row.get("id") in numbers]

    def _take_lock(self) -> None:
        lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(lock, 200).decode("utf-8", "replace").strip() or "another process"
            os.close(lock)
            raise MemlabError(f"this memory is in use by {holder}", where=str(self.folder),
                              fix="close it there (Memory.close()), or end that process: one at a time") from None
        except OSError:
            os.close(lock)
            raise
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        self._lock = lock

    def _lines(self) -> Iterator[bytes]:
        with (self.folder / FILE).open("rb") as file:
            yield from file

    def _read(self) -> list[Entry]:
        entries: dict[int, Entry] = {}
        damaged: dict[int, bytes] = {}
        for number, line in enumerate(self._lines(), start=1):
            row = decode(line)
            if row is not None and row.get("format", 1) != 1:
                raise MemlabError(f"this memory is of format {row['format']}, which this version does not know",
                                  where=str(self.folder), fix="use the memlab that wrote it, or a newer one")
            if row is None:
                damaged[number] = line
            elif "id" in row:
                entries[row["id"]] = Entry.of_row(row)
        if damaged and not entries and not encode(_HEADER).startswith(damaged.get(1, b"")):
            raise MemlabError(f"{FILE} is no live memory", where=str(self.folder), fix="choose another folder")
        if damaged:
            self._set_aside(damaged)
        return [entries[n] for n in sorted(entries)]

    def _set_aside(self, damaged: Mapping[int, bytes]) -> None:
        warnings.warn(f"{self.folder / FILE}: line {', '.join(map(str, damaged))} is damaged (its process was ended "
                      f"while it wrote, or the disk is faulty): dropped, and kept as {DAMAGED}", stacklevel=2)
        with (self.folder / DAMAGED).open("ab") as file:
            file.writelines(line.rstrip(b"\n") + b"\n" for line in damaged.values())
        intact = [line for number, line in enumerate(self._lines(), start=1) if number not in damaged]
        self._rewrite([encode(_HEADER), *intact] if 1 in damaged else intact)

    def _append(self, line: bytes) -> None:
        with (self.folder / FILE).open("ab", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            try:
                write_all(file, line)
                os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    file.truncate(size)  # nothing may follow half a line
                raise

    def _rewrite(self, lines: Iterable[bytes]) -> None:
        atomic_write(self.folder / FILE, b"".join(lines))
        _sync(self.folder)


def _errors(folder: Path) -> AbstractContextManager[None]:
    return os_errors("the memory cannot be used", folder, fix="check its permissions, or free some space there",
                     kept="what was added before is kept")


def _sync(folder: Path) -> None:
    """Sync a folder, so that the name of a new or renamed file is on the disk."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
