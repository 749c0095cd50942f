"""One sentence in place of a traceback on Ctrl-C (also during imports) and on disk errors."""

from __future__ import annotations

import contextlib
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


def watch() -> None:
    """Print one sentence in place of a traceback on Ctrl-C and disk errors, from now on."""
    before = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if is_interrupt(error):
            _say("\ninterrupted; finished work is kept")
            os._exit(INTERRUPTED)
        from memlab.support.errors import MemlabError, disk_fault
        from memlab.support.text.display import safe_text

        if fault := error if isinstance(error, MemlabError) else disk_fault(error):
            _say(f"memlab: {safe_text(fault)}")
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
