"""Files: atomic writing, lines of JSON with checksums, and locks shared by readers."""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import json
import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlab.support.errors import ELSEWHERE, MemlabError, disk_fault

if TYPE_CHECKING:
    import polars as pl


class SharedLock:
    """A lock for many readers or one writer. A thread that holds the lock may take it again, but no reader may write.

    Whoever comes takes the turn: a writer keeps it while it waits for the readers to leave and until its own end, a
    reader only until it is in. So a stream of readers never keeps a writer out.
    """

    def __init__(self) -> None:
        self._turn = threading.RLock()
        self._left = threading.Condition()  # of readers
        self._readers = 0
        self._here = threading.local()  # its attributes "reads" and "writes" are True in threads that do

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock as the writer. Raises MemlabError in a thread that reads: it would wait for itself."""
        if getattr(self._here, "reads", False):
            raise MemlabError("what answers a question cannot change what is asked",
                              fix="make the change when the question is answered")
        with self._turn:
            outer = getattr(self._here, "writes", False)
            with self._left:
                self._left.wait_for(lambda: not self._readers)
            self._here.writes = True
            try:
                yield
            finally:
                self._here.writes = outer

    @contextmanager
    def shared(self, ready: Callable[[], bool], prepare: Callable[[], None]) -> Iterator[None]:
        """Hold the lock as a reader of something that is ready; ``prepare`` runs alone where it is not.

        No writer comes between ``prepare`` and the block.
        """
        if getattr(self._here, "writes", False):
            prepare()
            yield
            return
        if getattr(self._here, "reads", False):
            yield
            return
        with self._turn:
            if not ready():
                with self.alone():
                    prepare()
            with self._left:
                self._readers += 1
        self._here.reads = True
        try:
            yield
        finally:
            self._here.reads = False
            with self._left:
                self._readers -= 1
                self._left.notify_all()


TEMPORARY = ".tmp"
"""Ends the name of everything that is not yet in its place: ``.NAME.RANDOM.tmp``."""

STALE = 3600.0
"""Seconds without a write after which a temporary file or folder is taken for that of a killed process."""


@contextmanager
def disk_faults(place: Path, problem: str = "cannot be written", other: str = ELSEWHERE) -> Iterator[None]:
    """Raise a fault of the disk in the block as a DiskFault that names the place; ``other`` is another way out.

    Libraries that write by themselves raise exceptions of many kinds.
    """
    try:
        yield
    except Exception as error:
        fault = disk_fault(error, place, problem, other)
        if fault is None or fault is error:
            raise
        raise fault from error


@contextmanager
def atomic_path(path: Path, sync: bool = True, other: str = ELSEWHERE) -> Iterator[Path]:
    """Yield a temporary path to write a file to; it is renamed to ``path`` if the block ends without an error.

    ``path`` then holds either the whole new file or what was there before, whatever kills the process; without
    ``sync`` a power failure may leave a part of it. Its folder is made. A file in a folder that is closed to other
    users is closed too. Raises DiskFault, which names ``path`` and ``other``, another way out.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with disk_faults(path, other=other):
            make_folder(path.parent)
            yield temporary
            if is_private(path.parent):
                temporary.chmod(0o600)
            if sync:
                _sync(temporary)
            os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def atomic_write(path: Path, content: bytes | memoryview | str, other: str = ELSEWHERE) -> None:
    """Write a file whole or not at all; text is written as UTF-8. Its folder is made. Raises DiskFault."""
    with atomic_path(path, other=other) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def atomic_dir(path: Path, other: str = ELSEWHERE) -> Iterator[Path]:
    """Yield a temporary folder to fill; it is renamed to ``path`` if the block ends without an error.

    A folder that holds something by then is left as it is: another process was faster, with the same content.
    Raises DiskFault, which names ``path`` and ``other``, another way out.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMPORARY}")
    try:
        with disk_faults(path, other=other):
            make_folder(path.parent)
            temporary.mkdir()  # as open to others as the umask says
            yield temporary
            for file in temporary.rglob("*"):
                if file.is_file():
                    _sync(file)
            try:
                temporary.rename(path)
            except OSError:
                if not path.is_dir():
                    raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_parquet(frame: pl.DataFrame, path: Path) -> None:
    """Write a table, by way of memory: polars hides some errors of a full disk."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    path.write_bytes(buffer.getbuffer())


def is_private(folder: Path) -> bool:
    """Return whether a folder is closed to other users."""
    return not folder.stat().st_mode & 0o077


def make_folder(folder: Path) -> None:
    """Make a folder, and those above it; one that is inside a folder that is closed to other users is closed too."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700 if is_private(folder.parent) else 0o777, exist_ok=True)


def write_all(file: FileIO, data: bytes) -> None:
    """Write all bytes to an unbuffered file: the operating system has them, whatever ends this process afterwards."""
    rest = memoryview(data)
    while rest:
        rest = rest[file.write(rest) or 0:]


def is_stale(path: Path) -> bool:
    """Return whether nobody has written to a file or folder for an hour; False if it is gone."""
    try:
        return time.time() - path.stat().st_mtime > STALE
    except OSError:
        return False


def sweep_leftovers(path: Path) -> None:
    """Remove the temporary files and folders of ``path`` that killed processes left."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*{TEMPORARY}"):
        if is_stale(leftover) and not leftover.is_symlink():
            if leftover.is_dir():
                shutil.rmtree(leftover, ignore_errors=True)
            else:
                with suppress(OSError):
                    leftover.unlink()


@contextmanager
def read_errors(file: Path, fix: str = "") -> Iterator[None]:
    """Raise an OSError of the block as a MemlabError: the file cannot be read, the system's reason, the fix."""
    try:
        yield
    except OSError as error:
        raise MemlabError(f"cannot be read: {error.strerror or error}", where=str(file), fix=fix) from error


def open_plain(path: Path) -> BufferedReader:
    """Open a file for reading; raise OSError for a pipe, a device or a folder, whose bytes may never come or end."""
    number = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe without a writer would wait for one
    if stat.S_ISREG(os.fstat(number).st_mode):
        return os.fdopen(number, "rb")
    os.close(number)
    raise OSError(errno.EINVAL, "it is no plain file", str(path))


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole or not at all; raises ValueError for numbers that JSON does not know."""
    atomic_write(path, json.dumps(content, indent=1, allow_nan=False, default=str) + "\n")


def _sync(path: Path) -> None:
    # for writing where that is possible: to read a file would be a leak if a stage has it written by a library
    file = os.open(path, os.O_WRONLY if path.is_file() and os.access(path, os.W_OK) else os.O_RDONLY)
    try:
        os.fsync(file)  # network disks report a full quota only here
    finally:
        os.close(file)


MOST_OF_A_LINE = 1 << 27
"""Bytes of a checked line that are read: 134 MB, more than any reply."""

_START = b'{"check": "'
_DIGITS = 16
_CONTENT = len(_START) + _DIGITS + len(b'", ')


def encode_line(row: Mapping[str, Any]) -> bytes:
    """Return a row as one line of JSON that begins with a digest of its content, so that damage is recognised.

    It is ASCII alone, so that no character of a text can end it or be changed by an encoding.
    """
    content = json.dumps(row, ensure_ascii=True)[1:].encode()
    return _START + _line_digest(content) + b'", ' + content + b"\n"


def decode_line(line: bytes) -> dict[str, Any] | None:
    """Return the row of a checked line; None if the line is damaged, has no end, or is no JSON object.

    >>> decode_line(encode_line({"id": 0})), decode_line(encode_line({"id": 0})[:-1])
    ({'id': 0}, None)
    """
    content = line[_CONTENT:-1]
    if not (line.startswith(_START) and line.endswith(b"\n") and line[len(_START):][:_DIGITS] == _line_digest(content)):
        return None
    try:
        return dict(json.loads(b"{" + content))
    except (ValueError, RecursionError):
        return None


def _line_digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGITS // 2).hexdigest().encode()
