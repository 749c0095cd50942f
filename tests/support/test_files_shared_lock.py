"""A lock of readers side by side and one writer: who waits for whom, and that it is free after an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from memlab.support.errors import MemlabError
from memlab.support.files import SharedLock

SECONDS = 20
"""Longer than any wait below takes, if the lock works."""


def ready() -> bool:
    return True


def unexpected() -> None:
    raise AssertionError("there was nothing to prepare")


def fail() -> bool:
    raise KeyError("here")


def test_readers_run_side_by_side() -> None:
    lock, both = SharedLock(), threading.Barrier(2, timeout=SECONDS)

    def read(_: int) -> None:
        with lock.shared(ready, unexpected):
            both.wait()  # each waits for the other, inside the block

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(read, range(2)))


def test_a_writer_is_alone_and_none_comes_between_what_is_prepared_and_its_reading() -> None:
    lock, state, prepared = SharedLock(), {"ready": False, "writing": False}, list[int]()

    def prepare() -> None:
        assert not state["writing"]
        prepared.append(1)
        state["ready"] = True

    def work(n: int) -> None:
        for _ in range(50):
            if n == 0:
                with lock.alone():
                    state.update(ready=False, writing=True)
                    state["writing"] = False
            else:
                with lock.shared(lambda: state["ready"], prepare):
                    assert state == {"ready": True, "writing": False}

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert 1 <= len(prepared) <= 51


def test_a_writer_that_waits_comes_before_new_readers_and_lets_old_ones_read_again() -> None:
    lock, order = SharedLock(), list[str]()
    reading, leave = threading.Event(), threading.Event()

    def first() -> None:
        with lock.shared(ready, unexpected):
            reading.set()
            assert leave.wait(SECONDS)
            with lock.shared(ready, unexpected):
                order.append("first")

    def write() -> None:
        with lock.alone():
            order.append("writer")

    def second() -> None:
        with lock.shared(ready, unexpected):
            order.append("second")

    threads = [threading.Thread(target=target) for target in (first, write, second)]
    threads[0].start()
    assert reading.wait(SECONDS)
    threads[1].start()
    while lock._turn.acquire(blocking=False):  # until the writer has taken its turn, and waits
        lock._turn.release()
    threads[2].start()
    leave.set()
    for thread in threads:
        thread.join(SECONDS)
    assert order == ["first", "writer", "second"]


def test_the_writers_thread_may_take_it_again_and_read() -> None:
    lock, calls = SharedLock(), list[str]()
    with lock.alone(), lock.alone(), lock.shared(ready, lambda: calls.append("prepared")):
        pass
    assert calls == ["prepared"]


@pytest.mark.parametrize(("check", "prepare"), [(fail, unexpected), (lambda: False, fail)])
def test_an_error_leaves_it_free(check: Callable[[], bool], prepare: Callable[[], None]) -> None:
    lock = SharedLock()
    with pytest.raises(KeyError), lock.shared(check, prepare):
        raise AssertionError("the block must not run")
    with pytest.raises(KeyError), lock.alone():
        fail()
    with pytest.raises(KeyError), lock.shared(ready, unexpected):
        fail()
    free = threading.Thread(target=lambda: lock.alone().__enter__())
    free.start()
    free.join(SECONDS)
    assert not free.is_alive()


def test_a_reader_cannot_write_and_still_holds_the_lock_after_the_error() -> None:
    lock = SharedLock()
    with lock.shared(ready, unexpected):
        with pytest.raises(MemlabError, match="cannot change what is asked"), lock.alone():
            pass
        assert lock._readers == 1
    with lock.alone():
        pass
