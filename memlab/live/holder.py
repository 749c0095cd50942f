"""The process that has a live memory's database open, found without opening the database where this process holds it.

POSIX locks end when their process closes any descriptor of the file, so a file that this process holds is never opened.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

_FLOCK = "hhqqi4x"  # struct flock of Linux: type, whence, start, length, process
_HELD: dict[tuple[int, int], int] = {}
"""Process by device and inode of each database that it has open; a forked process inherits the entries."""


def inode(path: Path) -> tuple[int, int]:
    """Return the device and inode of a file; raise OSError if there is none."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino


def hold(file: tuple[int, int]) -> None:
    """Note that this process holds a file."""
    _HELD[file] = os.getpid()


def release(file: tuple[int, int]) -> None:
    """Note that this process no longer holds a file."""
    _HELD.pop(file, None)


def holder(path: Path) -> str | None:
    """Return a description of the process that has locked a file; None if nobody has."""
    process = _HELD.get(inode(path))
    if process is None:
        process = _locked_by(path)
    if process is None:
        return None
    return f"process {process} on {socket.gethostname()}" if process > 0 else "another process"


def _locked_by(path: Path) -> int | None:
    """Ask Linux for the process that has locked a file; 0 if it does not say, None on other systems."""
    if not sys.platform.startswith("linux"):
        return None
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for a writer
    try:
        question = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        with suppress(OSError, struct.error):
            kind, _, _, _, process = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, question))
            return None if kind == fcntl.F_UNLCK else max(0, process)
        return None
    finally:
        os.close(file)
