"""What a job in another thread gives: everything, in order, no further ahead than asked for."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from memlab.models.server import Emit, background


@pytest.mark.parametrize("queue_size", [1, 7, 1000])
def test_many_emitters_lose_nothing_and_keep_their_order(queue_size: int) -> None:
    async def emitter(name: int, emit: Emit[tuple[int, int]]) -> None:
        for i in range(50):
            await emit((name, i))
            if i % 5 == name:
                await asyncio.sleep(0)

    async def work(emit: Emit[tuple[int, int]]) -> None:
        await asyncio.gather(*(emitter(name, emit) for name in range(4)))

    found = list(background(work, queue_size))
    for name in range(4):
        assert [i for who, i in found if who == name] == list(range(50))


def test_an_item_is_there_while_the_work_goes_on() -> None:
    seen = threading.Event()

    async def work(emit: Emit[str]) -> None:
        await emit("first")
        assert await asyncio.to_thread(seen.wait, 60)
        await emit("second")

    items = background(work, queue_size=1)
    assert next(items) == "first"
    seen.set()
    assert list(items) == ["second"]


def test_an_error_comes_after_what_was_given_before_it() -> None:
    async def work(emit: Emit[int]) -> None:
        await emit(1)
        await emit(2)
        raise ValueError("broken")

    items = background(work, queue_size=9)
    assert [next(items), next(items)] == [1, 2]
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_a_slow_reader_is_not_left_behind() -> None:
    given = []

    async def work(emit: Emit[int]) -> None:
        for i in range(100):
            await emit(i)
            given.append(i)

    items = background(work, queue_size=5)
    next(items)
    time.sleep(0.2)
    assert len(given) <= 6
    assert list(items) == list(range(1, 100))
