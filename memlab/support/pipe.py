"""Output into a pipe that its reader closes early, as in ``memlab data list | head -1``.

The process ends quietly with status 141, as SIGPIPE would end it. The signal stays ignored: a broken connection to a
model server must not end the process.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

CLOSED = 141
"""Exit status: 128 and the number of SIGPIPE."""


def end_output(stream: TextIO) -> None:
    """Redirect a closed stream to /dev/null; exit with 141 if it was not standard error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    if stream is not sys.stderr:  # work goes on without its messages
        raise SystemExit(CLOSED) from None


@contextmanager
def flushed_output() -> Iterator[None]:
    """Flush standard output at the end of the block, so that a closed pipe is noticed; also a decorator."""
    try:
        yield
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            end_output(sys.stdout)
