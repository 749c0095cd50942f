"""Late interaction by candidates, compared with every memory scored."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.models.protocols import Floats, Ints, Role
from memlab.pipeline.tables import Tables
from memlab.stages.search import late_index
from memlab.stages.search.late_index import LateIndex
from memlab.stages.search.late_interaction import WeightedLate
from memlab.store import Store
from tests.examples import fewer
from tests.stages.search import late_worlds
from tests.stages.search.late_worlds import FixedVectors

WORDS = [f"w{i}" for i in range(40)]
ALL = {"exact_below": 0, "candidates": 1000, "probes": 1000}


class Words(FixedVectors):
    """Each word has a fixed unit vector."""

    def __init__(self) -> None:
        vectors = np.random.default_rng(0).standard_normal((len(WORDS), 8)).astype(np.float32)
        super().__init__(WORDS, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def world(memories: list[tuple[int, str]], questions: list[tuple[str, int | None]]) -> Tables:
    """Memories (session, key), session n said on day n, and questions (text, the day they are asked on)."""
    return late_worlds.world([(session, key, session) for session, key in memories], questions)


texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)
worlds = st.builds(world, st.lists(st.tuples(st.integers(0, 5), texts), min_size=1, max_size=30),
                   st.lists(st.tuples(texts, st.none() | st.integers(0, 5)), min_size=1, max_size=3))


def lanes(hits: pl.DataFrame) -> dict[tuple[int, str, int], float]:
    return {(query, lane, memory): score for query, lane, memory, score in
            hits.select("query", "lane", "memory", "score").iter_rows()}


@fewer(2)
@given(worlds, st.integers(0, 3), st.booleans(), st.sampled_from(["idf", "uniform"]), st.sampled_from([None, 1, 5]))
def test_with_all_candidates_it_is_the_exact_search(
        tables: Tables, window: int, sessions: bool, weighting: Any, centroids: int | None) -> None:
    fields: dict[str, Any] = {"matcher": Words(), "window": window, "sessions": sessions, "weighting": weighting}
    exact = lanes(WeightedLate(**fields).run(tables, Store())["hits"])
    every = lanes(LateIndex(**fields, **ALL, centroids=centroids).run(tables, Store())["hits"])
    assert every.keys() == exact.keys()
    assert every == pytest.approx(exact, abs=2e-6)


@fewer(4)  # each example builds an index
@given(worlds, st.integers(1, 8), st.integers(1, 6), st.integers(1, 9))
def test_every_candidate_has_its_exact_score(tables: Tables, candidates: int, probes: int, centroids: int) -> None:
    exact = lanes(WeightedLate(matcher=Words()).run(tables, Store())["hits"])
    some = lanes(LateIndex(matcher=Words(), exact_below=0, exact_queries=0, candidates=candidates, probes=probes,
                           centroids=centroids).run(tables, Store())["hits"])
    assert some.keys() <= exact.keys()
    assert some == pytest.approx({key: exact[key] for key in some}, abs=2e-6)
    for query in {query for query, _, _ in exact}:
        seen = sum(q == query and lane == "late:turn" for q, lane, _ in exact)
        for lane in ("late:turn", "late_window:turn"):
            assert sum((q, a) == (query, lane) for q, a, _ in some) == min(candidates, seen)
        assert sum((q, a) == (query, "late_session:turn") for q, a, _ in some) >= min(candidates, seen)


def test_a_share_of_the_memories_that_a_query_sees_are_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("ONE_IN", 3), ("FEWEST", 2), ("MOST", 6)):
        monkeypatch.setattr(late_index, name, number)
    tables = world([(n, "w1 w2") for n in range(20)], [("w1 w3", day) for day in (3, 11, 19)])  # 4, 12, 20 are seen
    stage = LateIndex(matcher=Words(), exact_below=0, exact_queries=0, sessions=False)
    hits = stage.run(tables, Store())["hits"]
    for lane, numbers in (("late:turn", [2, 4, 6]), ("late_window:turn", [2, 2, 3])):
        counts = hits.filter(pl.col("lane") == lane).group_by("query").len().sort("query")
        assert counts["len"].to_list() == numbers


class NoisyWords(Words):
    """Each word of each text has a vector of its own, near that of the word."""

    def token_vectors(self, texts: Sequence[str], role: Role) -> Iterator[tuple[Ints, list[Ints], list[Floats]]]:
        for positions, rows, matrices in super().token_vectors(texts, role):
            noisy = [matrix + np.random.default_rng(zlib.crc32(text.encode())).normal(0, 0.1, matrix.shape)
                     for text, matrix in zip(texts, matrices)]
            yield positions, rows, [(m / np.linalg.norm(m, axis=1, keepdims=True)).astype(np.float32) for m in noisy]


def test_sessions_are_found_though_each_holds_all_words() -> None:
    rng = np.random.default_rng(1)
    memories = [(n // 20, " ".join(rng.choice(WORDS, 8))) for n in range(2000)]
    tables = world(memories, [(" ".join(rng.choice(WORDS, 4)), None) for _ in range(20)])
    exact = WeightedLate(matcher=NoisyWords()).run(tables, Store())["hits"].filter(
        pl.col("rank") <= 20, lane="late_session:turn")  # the 20 memories of the best session
    stage = LateIndex(matcher=NoisyWords(), exact_below=0, exact_queries=0, candidates=200, probes=4, centroids=40)
    some = stage.run(tables, Store())["hits"]
    assert exact.join(some, on=["query", "lane", "memory"], how="semi").height >= 0.3 * exact.height


@pytest.mark.parametrize(("exact_below", "exact_queries", "hits"), [(5, 0, 3), (4, 0, 1), (0, 2, 3), (0, 1, 1)])
def test_small_pools_and_few_queries_are_searched_exactly(exact_below: int, exact_queries: int, hits: int) -> None:
    tables = world([(0, "w1 w2"), (0, "w3"), (1, "w2")], [("w2", None)])
    stage = LateIndex(matcher=Words(), exact_below=exact_below, exact_queries=exact_queries, candidates=1)
    assert stage.run(tables, Store())["hits"].filter(lane="late:turn").height == hits
