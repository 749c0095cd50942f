"""The lock of a live memory's folder, which one process at a time uses.

It is ``flock`` on the folder. SQLite's own lock, which follows POSIX, ends as soon as its process closes any descriptor
of the database, as a copy of the folder does; this one belongs to one open descriptor and lasts until that is closed.
"""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path

from memlab.support.errors import MemlabError

_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL, errno.EBADF)
"""What file systems say that have no locks; NFS, which has none on folders, says EBADF."""

_HELD: dict[int, tuple[int, int]] = {}
"""The device and inode of each folder that this process has locked, by the descriptor that locks it."""


def inode(path: Path) -> tuple[int, int]:
    """Return the device and inode of a file; raise OSError if there is none."""
    stat = path.stat()
    return stat.st_dev, stat.st_ino


class FolderLock:
    """The lock of one folder. A process that is forked from the holder does not hold it, and cannot release it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None
        self._process = 0

    def take(self) -> None:
        """Lock the folder; raise MemlabError if another memory, of any process, holds it, or if there are no locks."""
        file = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(file)
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise self.in_use() from error
            if error.errno in _WITHOUT_LOCKS:
                raise MemlabError("the file system of this folder has no locks, so two processes could change the "
                                  f"memory at once ({error.strerror})", where=str(self._folder),
                                  fix="keep the memory on a local disk") from error
            raise
        self._file, self._process = file, os.getpid()
        _HELD[file] = inode(self._folder)

    def release(self) -> None:
        """Let other processes use the folder."""
        file, self._file = self._file, None
        if file is not None and self._process == os.getpid():
            del _HELD[file]
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_UN)  # for descriptors that a library has copied, too
            os.close(file)

    def in_use(self) -> MemlabError:
        """Return the error that another memory holds the folder."""
        if inode(self._folder) in _HELD.values():
            holder, fix = "this process", "use the Memory of this folder that it has open, or close that first"
        else:
            holder, fix = "another process", ("close it there (Memory.close()), or end that process; "
                                              "Memory.backup(folder) makes a copy there meanwhile")
        return MemlabError(f"this memory is in use by {holder}, and one at a time uses it", where=str(self._folder),
                           fix=fix)


def _let_go() -> None:
    """Close the descriptors that a forked process has from the one that holds the locks."""
    for file in _HELD:
        os.close(file)
    _HELD.clear()


os.register_at_fork(after_in_child=_let_go)
