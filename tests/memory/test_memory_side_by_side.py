"""Questions to one live memory from several threads: they run side by side, and find what they find one by one."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from memlab.memory.memory import Memory
from memlab.models.protocols import Prompt
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.read.prompt import PromptTemplate
from memlab.stages.read.reader import Reader
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate
from tests.chats import ScriptedChat
from tests.memory.test_memory import PIPELINES
from tests.small import content_of, lexical
from tests.stages.search.test_late_index_live import NOUNS, session
from tests.token_words import TokenWords

ALL = {
    **{name: PIPELINES[name] for name in ("hybrid_header", "reranked", "related", "versioned", "pruned", "graph")},
    "weighted": Pipeline(late=WeightedLate(matcher=TokenWords())),  # type: ignore[arg-type]
    "indexed": Pipeline(late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=16)),  # type: ignore[arg-type]
}
THREADS = 4
PROMPT = PromptTemplate(instructions="{history}\nToday is {date}. Q: {question}")


def questions() -> list[tuple[str, str]]:
    """Return twelve questions, each with the day on which it is asked: some see a part of the sessions."""
    return [(" ".join(np.random.default_rng(n).choice(NOUNS, 2)), f"2023-{1 + n % 12:02d}-20") for n in range(12)]


@pytest.mark.parametrize("name", ALL)
def test_side_by_side_they_find_what_they_find_one_by_one(tmp_path: Path, name: str) -> None:
    with Memory(tmp_path / "a", ALL[name]) as memory:
        memory.add_many(map(session, range(12)))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    with Memory(tmp_path / "a", ALL[name]) as memory:
        expected = [memory.search(question, now) for question, now in questions()]
        counts = content_of(memory).accesses.frame()
    with Memory(tmp_path / "b", ALL[name]) as memory, ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda asked: memory.search(*asked), questions()))
        assert_frame_equal(content_of(memory).accesses.frame(), counts)
    with Memory(tmp_path / "b", ALL[name]) as memory:
        memory.list()
        assert_frame_equal(content_of(memory).accesses.frame(), counts)  # as they are on the disk
    for one, other in zip(expected, found):
        assert_frame_equal(one, other)


def test_a_session_is_added_while_a_model_answers(tmp_path: Path) -> None:
    """The addition waits for the answer, later questions for the addition; nobody waits for ever."""
    asked, go = threading.Event(), threading.Event()

    def reply(prompt: Prompt) -> str:
        asked.set()
        assert go.wait(30)
        return "yes"

    reader = Reader(chat=ScriptedChat(reply), prompt=PROMPT)  # type: ignore[arg-type]
    with Memory(tmp_path, lexical(answer=reader)) as memory, ThreadPoolExecutor(3) as pool:
        memory.add(session(1))
        answer = pool.submit(memory.answer, "Tea?")
        assert asked.wait(30)
        added = pool.submit(memory.add, session(2))
        later = pool.submit(memory.search, "number2")
        go.set()
        assert answer.result(30) == "yes"
        assert added.result(30) == 1
        assert later.result(30).height
    assert Memory(tmp_path).search("number2")["session"][0] == 1


def test_additions_and_questions_by_turns(tmp_path: Path) -> None:
    with Memory(tmp_path, ALL["indexed"]) as memory:
        def work(n: int) -> None:
            for i in range(4):
                memory.add(session(10 * n + i))
                assert memory.search("tea", "2024-01-01").height
                if i == 2:
                    memory.forget(str(10 * n))

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(work, range(THREADS)))
        assert sorted(memory.list()["name"]) == sorted(str(10 * n + i) for n in range(THREADS) for i in (1, 2, 3))
