"""A lock of readers side by side and one writer: who waits for whom, and that it is free after an error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from memlab.errors import MemlabError
from memlab.runtime.files import SharedLock

SECONDS = 20
"""Longer than any wait below takes, if the lock works."""


def ready() -> bool:
    return True


def nothing() -> None:
    return None


def unexpected() -> None:
    raise AssertionError("there was nothing to prepare")


def test_readers_run_side_by_side() -> None:
    lock, both = SharedLock(), threading.Barrier(2, timeout=SECONDS)

    def read(_: int) -> None:
        with lock.shared(ready, unexpected):
            both.wait()  # each waits for the other, inside the block

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(read, range(2)))


def test_a_writer_is_alone() -> None:
    lock, inside, most = SharedLock(), [0], [0]
    counting = threading.Lock()

    def work(n: int) -> None:
        for _ in range(50):
            if n % 2:
                with lock.alone():
                    assert inside[0] == 0
                    inside[0] += 100
                    inside[0] -= 100
            else:
                with lock.shared(ready, unexpected):
                    with counting:
                        inside[0] += 1
                        most[0] = max(most[0], inside[0])
                    with counting:
                        inside[0] -= 1

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert inside == [0]
    assert 1 <= most[0] <= 3


def test_a_writer_that_waits_comes_before_new_readers() -> None:
    lock, order = SharedLock(), list[str]()
    reading, leave = threading.Event(), threading.Event()

    def first() -> None:
        with lock.shared(ready, unexpected):
            reading.set()
            assert leave.wait(SECONDS)
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


def test_what_is_not_ready_is_prepared_once_and_no_writer_comes_between() -> None:
    lock, state, prepared = SharedLock(), {"ready": False}, list[int]()

    def prepare() -> None:
        if not state["ready"]:
            prepared.append(1)
            state["ready"] = True

    def work(n: int) -> None:
        for _ in range(30):
            if n == 0:
                with lock.alone():
                    state["ready"] = False
            else:
                with lock.shared(lambda: state["ready"], prepare):
                    assert state["ready"]

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert 1 <= len(prepared) <= 31


def test_the_writers_thread_may_take_it_again_and_read() -> None:
    lock, calls = SharedLock(), list[str]()
    with lock.alone(), lock.alone(), lock.shared(ready, lambda: calls.append("prepared")):
        pass
    assert calls == ["prepared"]
    with lock.alone():
        pass


def fail() -> bool:
    raise KeyError("here")


@pytest.mark.parametrize(("check", "prepare"), [(fail, nothing), (lambda: False, fail)])
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


def test_a_reader_may_read_again_while_a_writer_waits() -> None:
    lock, inside, waiting = SharedLock(), threading.Event(), threading.Event()

    def write() -> None:
        assert inside.wait(SECONDS)
        waiting.set()
        with lock.alone():
            pass

    def read() -> bool:
        with lock.shared(ready, unexpected):
            inside.set()
            assert waiting.wait(SECONDS)
            threading.Event().wait(0.1)  # until the writer waits for this reader
            with lock.shared(ready, unexpected):
                return True

    with ThreadPoolExecutor(2) as pool:
        writing, reading = pool.submit(write), pool.submit(read)
        assert reading.result(SECONDS)
        writing.result(SECONDS)


def test_a_reader_cannot_write_and_still_holds_the_lock_after_the_error() -> None:
    lock = SharedLock()
    with lock.shared(ready, unexpected):
        with pytest.raises(MemlabError, match="cannot change what is asked"), lock.alone():
            pass
        assert lock._readers == 1
    with lock.alone():
        pass
