"""An asyncio job behind an ordinary iterator; the loop runs in its own thread and ends with the iterator."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")
Emit = Callable[[Item], Awaitable[None]]

_FULL_WAIT = 0.01  # seconds between looks at a queue whose reader lags behind
_LONGEST_WAIT = 3600.0  # seconds; any limit will do


@dataclass(frozen=True)
class _End:
    error: BaseException | None


def _wait_for(ready: queue.SimpleQueue[Item]) -> Item:
    """Return the next item. Importing polars makes Ctrl-C wait for the end of a wait that has no time limit."""
    while True:
        with suppress(queue.Empty):
            return ready.get(timeout=_LONGEST_WAIT)


async def run_workers(worker: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Run ``count`` workers side by side; the first error ends the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(worker())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def background(work: Callable[[Emit[Item]], Coroutine[Any, Any, None]], queue_size: int) -> Iterator[Item]:
    """Yield the items that ``work(emit)`` emits while it runs; at most about ``queue_size`` items wait to be read.

    An error of the work is raised after the items before it. Leaving the iterator early, also by an interrupt, cancels
    the work and waits for its end.

    >>> async def work(emit):
    ...     for i in range(3):
    ...         await emit(i)
    >>> list(background(work, queue_size=1))
    [0, 1, 2]
    """
    ready: queue.SimpleQueue[list[Item] | _End] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    batch: list[Item] = []  # emitted in one turn of the loop: waking the reader costs more than reading an item
    emitted = consumed = 0

    def hand_over() -> None:
        ready.put(batch.copy())
        batch.clear()

    async def emit(item: Item) -> None:
        nonlocal emitted
        while emitted - consumed >= queue_size:
            await asyncio.sleep(_FULL_WAIT)
        emitted += 1
        if not batch:
            loop.call_soon(hand_over)
        batch.append(item)

    task = loop.create_task(work(emit))

    def run() -> None:
        error: BaseException | None = None
        try:
            loop.run_until_complete(task)
        except BaseException as problem:  # the reader raises it
            error = problem
        finally:
            with suppress(Exception):
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            hand_over()
            ready.put(_End(error))

    thread = threading.Thread(target=run, name="memlab-background", daemon=True)
    thread.start()
    try:
        while not isinstance(items := _wait_for(ready), _End):
            for item in items:
                consumed += 1
                yield item
        if items.error is not None:
            raise items.error
    finally:
        with suppress(RuntimeError):  # the loop is closed: the work has ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
