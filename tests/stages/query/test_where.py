"""Filters: a question finds what it finds in a memory that holds nothing but what fits."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from polars.testing import assert_frame_equal

from memlab.memory.memory import Memory, Session
from memlab.pipeline.pipeline import Pipeline
from memlab.pipeline.stage import EmptyStage
from memlab.stages.search.bm25 import BM25Okapi
from memlab.stages.search.dense import Dense
from memlab.stages.search.faiss_index import HNSW
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate
from memlab.stages.systems.memorystack.relations import MemoryStack
from memlab.support.errors import MemlabError
from tests.small import lexical
from tests.stages.search.world import WordEmbedder
from tests.token_words import TokenWords

WORDS = WordEmbedder()
NO_LEXICAL = EmptyStage(writes=("hits",))
PIPELINES = {
    "bm25": lexical(),
    "okapi": lexical(lexical=BM25Okapi()),
    "dense": Pipeline(dense=Dense(embedder=WORDS), lexical=NO_LEXICAL),
    "hnsw": Pipeline(dense=Dense(embedder=WORDS, index=HNSW(exact_below=0)), lexical=NO_LEXICAL),
    "late": lexical(late=WeightedLate(matcher=TokenWords())),
    "late_index": lexical(late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=4)),
    "related_late": lexical(late=LateIndex(matcher=TokenWords(), exact_below=0, centroids=4),
                            relate=MemoryStack(embedder=WORDS, related=0.3)),  # which changes the memories
    "related": Pipeline(dense=Dense(embedder=WORDS), relate=MemoryStack(embedder=WORDS, related=0.3)),
}
ASKED = "Which cat or boat did Ann buy in Lisbon?"
VALUES: dict[str, list[Any]] = {
    "user": ["ann", "ben", None], "room": ["kitchen", "garden", None], "kind": ["chat", None],
    "metadata.page": [1, 2, True, None], "metadata.project": ["boat", None]}


def sessions(count: int = 30) -> list[Session]:
    draw = random.Random(3)
    made = []
    for number in range(count):
        drawn = {key: draw.choice(values) for key, values in VALUES.items()}
        words = [" ".join(draw.choices(["cat", "boat", "Ann", "Lisbon", "tea", "rain", "buy", "red"], k=6))
                 for _ in range(draw.randint(1, 4))]
        made.append(Session(
            draw.choice([None, *(f"2023-05-{day:02}" for day in range(1, 28))]),
            [(draw.choice(["user", "assistant"]), text) for text in words], f"s{number:02}",
            **{key: value for key, value in drawn.items() if "." not in key},
            metadata={key.partition(".")[2]: value for key, value in drawn.items()
                      if "." in key and value is not None}))
    return made


def drawn_filter(draw: random.Random) -> dict[str, Any]:
    keys = draw.sample([*VALUES, "after", "before"], draw.randint(1, 3))
    return {key: f"2023-05-{draw.randint(1, 27):02}" if key in ("after", "before") else
            draw.choice(VALUES[key]) if draw.random() < 0.5 else draw.sample(VALUES[key], 2) for key in keys}


def fits(session: Session, where: dict[str, Any]) -> bool:
    for key, wanted in where.items():
        if key in ("after", "before"):
            day = str(session.said_on)
            if session.said_on is None or (day < wanted if key == "after" else day >= wanted):
                return False
            continue
        value = session.metadata.get(key.partition(".")[2]) if "." in key else getattr(session, key)
        if repr(value) not in [repr(one) for one in (wanted if isinstance(wanted, list) else [wanted])]:
            return False
    return True


@pytest.mark.parametrize("count", [5, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", PIPELINES)
def test_a_filter_finds_what_a_memory_of_the_fitting_sessions_finds(tmp_path: Path, name: str, count: int) -> None:
    pipeline, told, draw, sizes = PIPELINES[name], sessions(), random.Random(5), []
    with Memory(tmp_path / "all", pipeline) as memory:
        memory.add_many(told)
        whole = memory.search(ASKED, "2023-05-20", 100)
        for number in range(count):
            where = drawn_filter(draw)
            fitting = [session for session in told if fits(session, where)]
            with Memory(tmp_path / f"{number}", pipeline) as alone:
                alone.add_many(fitting)
                expected = alone.search(ASKED, "2023-05-20", 100).drop("session")
            assert_frame_equal(memory.search(ASKED, "2023-05-20", 100, where=where).drop("session"), expected,
                               abs_tol=2e-5)  # fp32 sums depend on how many vectors are multiplied at once
            assert memory.list(where=where)["name"].sort().to_list() == [session.name for session in fitting]
            assert memory.count(where) == len(fitting)
            sizes.append(expected.height)
        assert_frame_equal(memory.search(ASKED, "2023-05-20", 100), whole)
    assert any(0 < size < whole.height for size in sizes)


@pytest.mark.parametrize("name", PIPELINES)
def test_a_role_finds_what_a_memory_finds_in_which_the_other_is_forgotten(tmp_path: Path, name: str) -> None:
    with Memory(tmp_path, PIPELINES[name]) as memory:
        memory.add_many(sessions())
        found = memory.search(ASKED, "2023-06-20", 200, where={"role": "user"})
        count = memory.count({"role": "user"})
        assert 0 < found.height < memory.search(ASKED, "2023-06-20", 200).height
        memory.forget(where={"role": "assistant"})
        assert memory.count({"role": "assistant"}) == 0
        assert memory.count() == count
        assert_frame_equal(memory.search(ASKED, "2023-06-20", 200), found)


def test_all_questions_take_a_filter(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many([Session("2023-05-20", [("user", f"I bought a {word} boat.")], word, user=word)
                         for word in ("red", "blue")])
        assert memory.search("boat", where={"user": "blue"})["session"].to_list() == [1]
        assert memory.look("boat", where={"name": "blue"}).results["session"].to_list() == [1]
        assert memory.history("boat", where={"user": ["blue", "green"]})["session"].to_list() == [1]
        assert memory.search("boat", where={"user": "green"}).is_empty()
        assert memory.search("boat", where={}).height == 2


@pytest.mark.parametrize(("where", "message"), [
    ({"usr": "ann"}, "there is no field 'usr'.*did you mean '?user"), (5, "where: 5 does not fit"),
    ({"role": "bot"}, "there is no role 'bot'"), ({"after": "May"}, "where, after: 'May' is no date"),
    ({"user": {"a": 1}}, "where, user: .* is no plain value"), ({5: "ann"}, "where: 5 does not fit")])
def test_a_filter_that_cannot_be_met_is_refused(tmp_path: Path, where: Any, message: str) -> None:
    with Memory(tmp_path, lexical()) as memory:
        memory.add_many(sessions(2))
        for use in (memory.count, lambda w: memory.list(where=w), lambda w: memory.search("cat", where=w),
                    lambda w: memory.forget(where=w)):
            with pytest.raises(MemlabError, match=message):
                use(where)
        with pytest.raises(MemlabError, match="a filter is given without a condition"):
            memory.forget(where={})
        with pytest.raises(MemlabError, match="a session and a filter are given"):
            memory.forget("s00", where={"user": "ann"})
        with pytest.raises(MemlabError, match="nothing is named"):
            memory.forget()
        assert memory.count() == 2
