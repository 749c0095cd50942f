"""A memory for asyncio: the same methods, many at once, and calls that are cancelled."""

from __future__ import annotations

import asyncio
import inspect
import threading
from pathlib import Path

import pytest

from memlab import AsyncMemory
from memlab.memory.memory import Memory, Session
from memlab.memory.results import SearchResult
from memlab.support.errors import MemlabError
from tests.small import lexical

SESSIONS = [Session(f"2023-05-{1 + n % 28:02}", [("user", f"I saw boat {n}.")], f"s{n}", user=f"user{n % 3}")
            for n in range(60)]


def test_every_method_of_a_memory_is_there_with_its_signature_and_words() -> None:
    methods = {name for name, value in vars(Memory).items() if not name.startswith("_") and callable(value)}
    assert methods
    for name in methods | {"__init__"}:
        mine, its = getattr(AsyncMemory, name), getattr(Memory, name)
        assert inspect.signature(mine) == inspect.signature(its), name
        if name not in ("__init__", "close"):
            assert inspect.getdoc(mine) == inspect.getdoc(its)
            assert inspect.iscoroutinefunction(mine)


def test_a_hundred_questions_and_additions_at_once(tmp_path: Path) -> None:
    async def use() -> list[int]:
        async with AsyncMemory(tmp_path, lexical()) as memory:
            await memory.add_many(SESSIONS[:20])
            calls = [memory.add(session) for session in SESSIONS[20:]]
            asked = [memory.search("Which boat?", "2023-06-01", 100, where={"user": f"user{n % 3}"}) for n in range(60)]
            results = await asyncio.gather(*(call for pair in zip(calls, asked[:40]) for call in pair), *asked[40:])
            for found in results[1:80:2]:
                assert found["text"].str.contains("boat").all()
            assert (await memory.count()) == len(SESSIONS)
            looked = await memory.look("Which boat?", "2023-06-01")
            assert isinstance(looked, SearchResult)
            with pytest.raises(MemlabError, match="there is no session 'none'"):
                await memory.get("none")
            return [*results[:80:2]]

    assert sorted(asyncio.run(use())) == [*range(20, 60)]


def test_a_cancelled_call_leaves_the_memory_whole_and_the_folder_free(tmp_path: Path) -> None:
    entered, cancelled = threading.Event(), threading.Event()

    async def use() -> None:
        async with AsyncMemory(tmp_path, lexical()) as memory:
            await memory.add(SESSIONS[0])

            def slowly(sessions: list[Session]) -> object:
                entered.set()
                cancelled.wait(60)
                return memory.memory.add_many(sessions)

            held = asyncio.get_running_loop().run_in_executor(memory._threads, slowly, SESSIONS[1:30])
            waiting = [asyncio.ensure_future(memory.add(session)) for session in SESSIONS[30:]]
            await asyncio.to_thread(entered.wait)
            for task in (held, *waiting):
                task.cancel()
            cancelled.set()
            done = await asyncio.gather(held, *waiting, return_exceptions=True)
            assert isinstance(done[0], asyncio.CancelledError)

    asyncio.run(use())
    with Memory(tmp_path, lexical()) as memory:  # the folder is not locked by a call that ran on
        names = {memory.get(number).name for number in memory.list()["session"]}
        assert {f"s{n}" for n in range(30)} <= names <= {session.name for session in SESSIONS}
        assert memory.search("boat", "2023-06-01", 100).height == len(names)
