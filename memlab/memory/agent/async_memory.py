"""A live memory for asyncio: the methods of ``Memory`` as coroutines, each run in a thread.

::

    async with AsyncMemory("ann") as memory:
        await memory.add(Session("2023-05-20", [("user", "I adopted a cat named Tom.")]))
        found = await memory.search("Which pet do I have?")

Many may run at once, by the rules of ``memlab.memory.memory`` for threads: questions run side by side, changes alone. A
call
that is cancelled stops waiting. What its thread has begun is finished, so that a session is added whole or not at all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from memlab.memory.memory import Memory, NotNegative, OwnStore, Stages
from memlab.support.arguments import Place

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _in_thread(method: Callable[Concatenate[Memory, _P], _R]
               ) -> Callable[Concatenate[AsyncMemory, _P], Coroutine[Any, Any, _R]]:
    @wraps(method)
    async def call(self: AsyncMemory, *args: _P.args, **options: _P.kwargs) -> _R:
        work = partial(method, self.memory, *args, **options)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
    return call


class AsyncMemory:
    """A ``Memory`` whose methods are awaited; arguments, results and errors are the same.

    memory: the memory itself, for what needs no waiting. ``import_sessions`` stands for ``Memory.from_folder``.
    """

    def __init__(self, folder: Place, pipeline: Stages | None = None, store: OwnStore | None = None,
                 *, often: NotNegative = 5, timezone: str | None = None) -> None:
        self.memory = Memory(folder, pipeline, store, often=often, timezone=timezone)
        self._threads = ThreadPoolExecutor(thread_name_prefix="memory")  # not those of the loop: calls wait in them

    add = _in_thread(Memory.add)
    add_document = _in_thread(Memory.add_document)
    add_many = _in_thread(Memory.add_many)
    answer = _in_thread(Memory.answer)
    backup = _in_thread(Memory.backup)
    count = _in_thread(Memory.count)
    deprecate = _in_thread(Memory.deprecate)
    export = _in_thread(Memory.export)
    feedback = _in_thread(Memory.feedback)
    forget = _in_thread(Memory.forget)
    get = _in_thread(Memory.get)
    history = _in_thread(Memory.history)
    import_sessions = _in_thread(Memory.import_sessions)
    list = _in_thread(Memory.list)
    look = _in_thread(Memory.look)
    prune = _in_thread(Memory.prune)
    restore = _in_thread(Memory.restore)
    search = _in_thread(Memory.search)
    search_text = _in_thread(Memory.search_text)
    search_vector = _in_thread(Memory.search_vector)
    today = _in_thread(Memory.today)
    update = _in_thread(Memory.update)

    async def close(self) -> None:
        """Release the folder when what runs has ended, cancelled calls too; the next use loads the memory again."""
        threads, self._threads = self._threads, ThreadPoolExecutor(thread_name_prefix="memory")
        await asyncio.to_thread(threads.shutdown)
        await asyncio.to_thread(self.memory.close)

    async def __aenter__(self) -> AsyncMemory:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()
