"""A lock that many readers hold side by side, and a writer alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from memlab.errors import MemlabError


class SharedLock:
    """Readers side by side, or one writer. A thread that holds the lock may take it again, but no reader may write.

    A reader waits while a writer waits, so that a stream of readers never keeps a writer out.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._readers = self._waiting = self._depth = 0
        self._writer: int | None = None  # the thread that writes
        self._reading = threading.local()  # its attribute "now" is True in threads that read

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the lock as the writer. Raises MemlabError in a thread that reads: it would wait for itself."""
        if getattr(self._reading, "now", False):
            raise MemlabError("what answers a question cannot change what is asked",
                              fix="make the change when the question is answered")
        self._enter_alone()
        try:
            yield
        finally:
            self._leave_alone()

    @contextmanager
    def shared(self, ready: Callable[[], bool], prepare: Callable[[], None]) -> Iterator[None]:
        """Hold the lock as a reader of something that is ready; ``prepare`` runs alone where it is not.

        No writer comes between ``prepare`` and the block.
        """
        if self._writer == threading.get_ident():
            prepare()
            yield
            return
        if getattr(self._reading, "now", False):
            yield
            return
        self._enter_shared()
        try:
            is_ready = ready()
        except BaseException:
            self._leave_shared()
            raise
        if not is_ready:
            self._leave_shared()
            self._enter_alone()
            try:
                prepare()
            except BaseException:
                self._leave_alone()
                raise
            self._become_shared()
        self._reading.now = True
        try:
            yield
        finally:
            self._reading.now = False
            self._leave_shared()

    def _enter_alone(self) -> None:
        me = threading.get_ident()
        with self._changed:
            if self._writer != me:
                self._waiting += 1
                try:
                    self._changed.wait_for(lambda: self._writer is None and not self._readers)
                finally:
                    self._waiting -= 1
                    self._changed.notify_all()
                self._writer = me
            self._depth += 1

    def _leave_alone(self) -> None:
        with self._changed:
            self._depth -= 1
            if not self._depth:
                self._writer = None
                self._changed.notify_all()

    def _enter_shared(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._writer is None and not self._waiting)
            self._readers += 1

    def _leave_shared(self) -> None:
        with self._changed:
            self._readers -= 1
            self._changed.notify_all()

    def _become_shared(self) -> None:
        with self._changed:
            self._readers += 1
        self._leave_alone()
