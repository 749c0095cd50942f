"""Endings of a command that nothing catches, in one sentence: Ctrl-C, also during imports, and faults of a disk."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from types import TracebackType

INTERRUPTED = 130
"""Exit status of a command that Ctrl-C ended, as shells give it."""


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an exception is Ctrl-C, or was raised while one was handled.

    A library that is interrupted while it is imported can report that it cannot be imported.
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EIO, errno.ESTALE, errno.ENAMETOOLONG, errno.ENOTDIR,
           errno.EISDIR, errno.EEXIST, errno.ELOOP)


def disk_fault(error: BaseException) -> str:
    """Return a sentence on a fault of a disk or a folder: where, what, and how to go on; "" for another exception.

    Libraries that write by themselves give the system's words and no number.

    >>> print(disk_fault(OSError(errno.ENOSPC, "No space left on device", "a.json")))
    a.json: No space left on device. Fix: free some space there and run the same line again; finished work is kept
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        number = next((full for full in _FULL if os.strerror(full) in str(error)), None)
    if number not in (*_FULL, *_CLOSED):
        return ""
    where = os.fsdecode(getattr(error, "filename2", None) or getattr(error, "filename", None) or "") or "a file"
    fix = "free some space there and run the same line again" if number in _FULL else \
        "choose a place where you can read and write"
    return f"{where}: {os.strerror(number)}. Fix: {fix}; finished work is kept"


def watch() -> None:
    """Have this process end with one sentence if Ctrl-C or a fault of a disk ends it."""
    before = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_interrupt(error):
            _say("\ninterrupted; finished work is kept")
            os._exit(INTERRUPTED)
        if sentence := disk_fault(error):
            from memlab.errors import hide
            from memlab.text.display import sanitise

            _say(f"memlab: {sanitise(hide(sentence))}")
            return
        before(kind, error, trace)

    sys.excepthook = end


def _say(sentence: str) -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    with contextlib.suppress(OSError):
        os.write(2, f"{sentence}\n".encode(errors="replace"))


def is_command() -> bool:
    """Return whether this process was started as ``memlab`` or ``python -m memlab``, and not to use memlab from Python.

    Python's own name for a module that it still looks for is ``-m``.
    """
    name = sys.argv[0] if sys.argv else ""
    return name == "-m" or os.path.basename(name) in ("memlab", "memlab.exe")
