"""A live memory on disk: one file of lines, one line per addition, and a lock that keeps other processes out.

A line is written whole, with a digest, and synced before the addition counts, so that whatever ends the process costs
at most the addition in progress. Damaged lines are moved aside, into a file of their own, and named in a warning.
Forgetting writes the file anew without what was forgotten.
"""

from __future__ import annotations

import fcntl
import os
import socket
import warnings
from collections.abc import Iterator, Mapping
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
    """The lines of one folder; held by one process at a time from ``open`` to ``close``.

    Raises MemlabError, on any of its methods, where the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: int | None = None

    @staticmethod
    def there(folder: Path) -> bool:
        """Return whether a folder holds a live memory."""
        return (folder / FILE).is_file()

    def open(self) -> list[Entry]:
        """Lock the folder, making it if need be, and return all entries, those forgotten included."""
        with _errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            self._take_lock()
            try:
                for leftover in self.folder.glob(f"*{TEMPORARY}"):  # may hold what was forgotten since
                    leftover.unlink()
                if not self.there(self.folder):
                    self._append(encode(_HEADER))
                    _sync(self.folder)
                return self._read()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Let other processes in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def append(self, entry: Entry) -> None:
        """Write an entry; when this returns it is on the disk, when it raises the file is as before."""
        with _errors(self.folder):
            self._append(encode(entry.row()))

    def replace(self, entries: Mapping[int, Entry]) -> None:
        """Write the file anew with these entries in the place of those of their numbers."""
        def line(old: bytes) -> bytes:
            row = decode(old) or {}
            return encode(entries[row["id"]].row()) if row.get("id") in entries else old

        with _errors(self.folder):
            self._rewrite(line(old) for old in self._lines())

    def find(self, numbers: set[int]) -> list[Entry]:
        """Read some entries again."""
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
        found: dict[int, Entry] = {}
        bad: dict[int, bytes] = {}
        for number, line in enumerate(self._lines(), start=1):
            row = decode(line)
            if row is not None and row.get("format", 1) != 1:
                raise MemlabError(f"this memory is of format {row['format']}, which this version does not know",
                                  where=str(self.folder), fix="use the memlab that wrote it, or a newer one")
            if row is None:
                bad[number] = line
            elif "id" in row:
                found[row["id"]] = Entry.of_row(row)
        if bad and not found and not encode(_HEADER).startswith(bad.get(1, b"")):
            raise MemlabError(f"{FILE} is no live memory", where=str(self.folder), fix="choose another folder")
        if bad:
            self._set_aside(bad)
        return [found[n] for n in sorted(found)]

    def _set_aside(self, bad: Mapping[int, bytes]) -> None:
        named = ", ".join(map(str, sorted(bad)))
        warnings.warn(f"{self.folder / FILE}: line {named} is damaged (a process that was ended while it wrote, or a "
                      f"disk): dropped, and kept as {DAMAGED}", stacklevel=2)
        with (self.folder / DAMAGED).open("ab") as file:
            file.writelines(line.rstrip(b"\n") + b"\n" for line in bad.values())
        good = [line for number, line in enumerate(self._lines(), start=1) if number not in bad]
        self._rewrite(iter([encode(_HEADER), *good] if 1 in bad else good))

    def _append(self, line: bytes) -> None:
        with (self.folder / FILE).open("ab", buffering=0) as file:
            before = os.fstat(file.fileno()).st_size
            try:
                write_all(file, line)
                os.fsync(file.fileno())
            except BaseException:
                with suppress(OSError):
                    file.truncate(before)  # nothing may follow half a line
                raise

    def _rewrite(self, lines: Iterator[bytes]) -> None:
        atomic_write(self.folder / FILE, b"".join(lines))
        _sync(self.folder)


def _errors(folder: Path) -> AbstractContextManager[None]:
    return os_errors("the memory cannot be used", folder, fix="check its permissions, or free some space there",
                     kept="what was added before is kept")


def _sync(folder: Path) -> None:
    """Make a new or renamed file's name last."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
