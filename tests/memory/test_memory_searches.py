"""Searches of a memory by words and by a vector alone, and sessions that another one makes needless."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memlab.memory.memory import Memory, Session
from memlab.models.protocols import Role
from memlab.pipeline.pipeline import Pipeline
from memlab.stages.query.filters import Filter
from memlab.stages.search.bm25 import BM25
from memlab.stages.search.dense import Dense
from memlab.stages.search.faiss_index import HNSW
from memlab.stages.systems.memorystack.search import BySource
from memlab.support.errors import MemlabError
from tests.small import lexical
from tests.stages.search.world import WordEmbedder

WORDS = WordEmbedder()
DENSE = Pipeline(dense=Dense(embedder=WORDS))
TOLD = [Session("2023-05-20", [("user", "I bought a red boat."), ("assistant", "A boat!")], "boat", room="lake"),
        Session("2023-05-21", [("user", "My cat likes the sea.")], "cat", room="house"),
        Session("2023-06-21", [("user", "The boat sank.")], "sank", room="lake")]


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    with Memory(tmp_path / "ann", DENSE) as one:
        one.add_many(TOLD)
        yield one


def test_words_alone_are_scored_as_bm25_scores_them(memory: Memory, tmp_path: Path) -> None:
    with Memory(tmp_path / "words", lexical()) as words:
        words.add_many(TOLD)
        signals = words.search("red boat", "2023-07-01", 10)
    found = memory.search_text("red boat", "2023-07-01")
    assert found["text"].to_list() == ["I bought a red boat.", "A boat!", "The boat sank."]
    assert dict(found.select("text", "score").iter_rows()) == {
        text: score for text, score in signals.select("text", "lexical:turn").iter_rows() if score}
    assert memory.search_text("red boat", "2023-06-01", where={"room": "lake"}).height == 2
    assert memory.search_text("red boat", "2023-07-01", 1)["name"].to_list() == ["boat"]
    assert memory.search_text("red boat", "2023-07-01", threshold=found["score"][0]).height == 1
    assert memory.search_text("zebra", "2023-07-01").is_empty()
    with pytest.raises(MemlabError, match="the question is blank"):
        memory.search_text(" ")


def test_a_vector_finds_texts_by_their_cosine(memory: Memory) -> None:
    vector = 7 * WORDS.vector("boat red")
    found = memory.search_vector(vector, "2023-07-01")
    texts = [f"{turn.text}" for session in TOLD for turn in session.turns]
    cosines = {text: float(WORDS.vector(text) @ vector / np.linalg.norm(vector)) for text in texts}
    assert dict(found.select("text", "score").iter_rows()) == pytest.approx(cosines, abs=1e-5)
    assert found["score"].is_sorted(descending=True)
    assert memory.search_vector(vector.tolist(), "2023-07-01", 2).height == 2
    least = found["score"][1]
    assert memory.search_vector(vector, "2023-07-01", threshold=least).height == 2
    assert set(memory.search_vector(vector, "2023-07-01", where={"room": "house"})["name"]) == {"cat"}
    assert "sank" not in set(memory.search_vector(vector, "2023-06-01")["name"])


@pytest.mark.parametrize(("vector", "message"), [
    ([1.0, 2.0], r"the vector has 2 numbers, and the vectors of this memory"), ([[1.0, 2.0]], "it is no vector"),
    ([0.0] * 4, "at least one of them not 0"), ([float("nan"), 1.0], "finite numbers"), ("cat", "it is no vector")])
def test_what_is_no_vector_of_the_memory_is_refused(memory: Memory, vector: Any, message: str) -> None:
    with pytest.raises(MemlabError, match=message):
        memory.search_vector(vector, "2023-07-01")


def test_a_vector_needs_a_pipeline_with_vectors(tmp_path: Path) -> None:
    with Memory(tmp_path / "words", lexical()) as words, pytest.raises(MemlabError, match="stores no vectors"):
        words.search_vector([1.0])


def test_searches_of_one_retriever_look_into_a_filter_of_sources(tmp_path: Path) -> None:
    limited = Pipeline(dense=BySource(search=DENSE.dense), lexical=BySource(search=BM25(unmatched=True)))
    with Memory(tmp_path, limited) as memory:
        memory.add_many(TOLD)
        found = memory.search_vector(WORDS.vector("boat"), "2023-07-01", 2)
        assert sorted(found["text"]) == ["A boat!", "The boat sank."]
        assert memory.search_text("red boat", "2023-07-01").height == 4  # those without a word of the question too


def test_a_filter_of_the_pipeline_limits_searches_of_one_retriever_too(tmp_path: Path) -> None:
    with Memory(tmp_path, dataclasses.replace(DENSE, where=Filter(only={"role": "assistant"}))) as memory:
        memory.add_many(TOLD)
        for found in (memory.search("boat", "2023-07-01"), memory.search_text("boat", "2023-07-01"),
                      memory.search_vector(WORDS.vector("boat"), "2023-07-01")):
            assert found["text"].to_list() == ["A boat!"]


def test_a_session_that_says_what_another_says_is_added_once_if_it_should_be_unique(tmp_path: Path) -> None:
    with Memory(tmp_path, lexical()) as memory:
        first = memory.add([{"role": "user", "content": "I like tea."}], "2023-05-20", user="ann")
        again = [Session("2023-06-01", [("user", "I like tea.")], "x", user="ann", metadata={"page": 1}),
                 Session("2023-06-01", [("user", "I like tea.")], user="ben"),
                 Session("2023-06-02", [("user", "I like tea.")], user="ben"),
                 Session("2023-06-01", [("user", "I like Tea.")], user="ann")]
        assert memory.add_many(again, unique=True) == [first, 1, 1, 2]
        assert memory.add([{"role": "user", "content": "I like tea."}], user="ann", unique=True) == first
        assert memory.add([{"role": "user", "content": "I like tea."}], user="ann") == 3
        memory.forget(first)
    with Memory(tmp_path, lexical()) as memory:
        assert memory.add([{"role": "user", "content": "I like tea."}], user="ann", unique=True) == 3
        memory.forget(3)
        assert memory.add([{"role": "user", "content": "I like tea."}], user="ann", unique=True) == 4


def test_a_filter_compares_all_vectors_in_place_of_an_approximate_index(tmp_path: Path) -> None:
    pytest.importorskip("faiss")
    with Memory(tmp_path, Pipeline(dense=Dense(embedder=WORDS, index=HNSW(exact_below=3)))) as memory:
        memory.add_many(Session("2023-05-20", [("user", f"I bought boat {n} for the sea")], f"s{n}",
                                user=("ann", "ben")[n % 2]) for n in range(60))
        for where in (None, {"user": "ann"}, {"name": ["s3", "s4"]}):
            found = memory.search_vector(WORDS.vector("boat 4"), "2023-05-25", 5, where=where)
            assert found["name"][0] == "s4"
        assert len(list(tmp_path.rglob("*.faiss"))) == 1


def test_more_results_are_asked_for_than_a_search_usually_returns(tmp_path: Path) -> None:
    pipeline = Pipeline(dense=Dense(embedder=WordEmbedder(), depth=20), lexical=BM25(depth=30))
    with Memory(tmp_path, pipeline) as memory:
        memory.add_many([Session("2023-05-20", [("user", f"cat number{n}")]) for n in range(60)])
        for found in (memory.search("cat", k=50), memory.search_text("cat", k=50),
                      memory.search_vector(WordEmbedder().vector("cat"), k=50)):
            assert found.height == 50
        assert memory.search_text("cat", k=100).height == 60


@dataclass(frozen=True)
class Short(WordEmbedder):
    """Reads four words of a text."""

    def truncated(self, texts: Sequence[str], role: Role) -> np.ndarray:
        return np.array([len(text.split()) > 4 for text in texts])


def test_texts_that_the_encoder_cuts_are_counted_once(tmp_path: Path) -> None:
    turns = [("user", "tea"), ("user", "a boat as red as wine"), ("user", "a cow as brown as tea")]
    with Memory(tmp_path, lexical(dense=Dense(embedder=Short()))) as memory:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            memory.add(Session("2023-05-20", turns[:1]))
        with pytest.warns(UserWarning, match="only the beginning of 2 texts of this addition"):
            memory.add(Session("2023-05-20", turns))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            memory.add(Session("2023-05-21", [("user", "a fox as red as a brick")]))
