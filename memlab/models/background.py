"""An asyncio job behind an ordinary iterator: the loop runs in a thread of its own, and ends when the reader does.

Knows nothing of models.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

Item = TypeVar("Item")
Give = Callable[[Item], Awaitable[None]]

_FULL_WAIT = 0.01  # seconds between looks at a queue whose reader lags behind


@dataclass(frozen=True)
class _End:
    error: BaseException | None


def background(work: Callable[[Give[Item]], Coroutine[Any, Any, None]], ahead: int) -> Iterator[Item]:
    """Yield what ``work(give)`` gives, while it goes on working; at most about ``ahead`` items wait to be read.

    An error of the work is raised here after the items before it. Leaving the iterator early, by an interrupt too,
    cancels the work and waits for it to end.

    >>> async def work(give):
    ...     for i in range(3):
    ...         await give(i)
    >>> list(background(work, ahead=1))
    [0, 1, 2]
    """
    ready: queue.SimpleQueue[Item | _End] = queue.SimpleQueue()

    async def give(item: Item) -> None:
        while ready.qsize() >= ahead:
            await asyncio.sleep(_FULL_WAIT)
        ready.put(item)

    loop = asyncio.new_event_loop()
    task = loop.create_task(work(give))

    def run() -> None:
        error: BaseException | None = None
        try:
            loop.run_until_complete(task)
        except BaseException as problem:  # whatever it is, the reader is told, and raises it
            error = problem
        finally:
            with suppress(Exception):
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()
            ready.put(_End(error))

    thread = threading.Thread(target=run, name="memlab-background", daemon=True)
    thread.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, _End):
                if item.error is not None:
                    raise item.error
                return
            yield item
    finally:
        with suppress(RuntimeError):  # the loop is closed: the work has ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
