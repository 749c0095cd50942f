"""Hits of later days are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import Tables
from memlab.stages.search.bm25 import BM25, BM25Okapi
from memlab.stages.search.dense import Dense
from memlab.stages.search.faiss_index import HNSW
from memlab.stages.search.hits import pools
from memlab.stages.search.late_interaction import WeightedLate
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.search.world import WordEmbedder, day, world
from tests.token_words import TokenWords

LANES = [Dense(embedder=WordEmbedder()), BM25(unmatched=True), BM25Okapi(),
         WeightedLate(matcher=TokenWords(), window=0, sessions=False),
         Dense(embedder=WordEmbedder(), index=HNSW(exact_below=1, threads=1), name="graph")]

dates = st.one_of(st.none(), st.builds(day, st.integers(0, 4), st.integers(0, 23)))
kinds = st.sampled_from(["turn", "session"])
some_memories = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["tea cup", "blue sea", "tea"]), dates, kinds),
                         max_size=25)
some_questions = st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["tea", "sea bird"]), dates), max_size=6)


def allowed(tables: Tables) -> set[tuple[int, int, str]]:
    """Recompute (query, memory, kind) pair by pair."""
    questions = {q["question"]: q for q in tables["questions"].to_dicts()}
    return {
        (query["query"], memory["memory"], memory["kind"])
        for query in tables["queries"].to_dicts() for memory in tables["memories"].to_dicts()
        if (asked := questions[query["question"]])["corpus"] == memory["corpus"]
        and (asked["asked_on"] is None or memory["said_on"] is None
             or memory["said_on"].date() <= asked["asked_on"].date())}


@given(some_memories, some_questions)
def test_pools_are_the_as_of_rule(memories: list, questions: list) -> None:
    tables = world(memories, questions)
    queries, rows = tables["queries"], tables["memories"]
    got = [
        (queries["query"][int(query)], rows["memory"][int(memory)], pool.kind)
        for pool in pools(queries, tables["questions"], rows)
        for query, seen in zip(pool.queries, pool.visible) for memory in pool.memories[:seen]]
    assert len(got) == len(set(got))
    assert set(got) == allowed(tables)


@given(some_memories, some_questions)
def test_every_lane_ranks_exactly_what_may_be_seen(memories: list, questions: list) -> None:
    tables = world(memories, questions)
    for lane in LANES:
        hits = lane.run(tables, Store())["hits"]
        got = {(h["query"], h["memory"], h["lane"].split(":")[1]) for h in hits.to_dicts()}
        assert got == allowed(tables), lane
        assert hits.height == len(got)


@pytest.mark.parametrize("lane", [BM25(), BM25Okapi()], ids=["bm25", "official"])
def test_a_future_memory_changes_no_score(lane: BM25) -> None:
    """Document frequencies and mean lengths leave out what was not yet said."""
    memories = [(0, "red kite flies", day(0)), (0, "blue kite", day(1)), (0, "my car is red and red", day(2))]
    later = [*memories, (0, "red kite red kite again and again", day(9))]
    scores = [lane.run(world(m, [(0, "red kite", day(3))]), Store())["hits"]["score"] for m in (memories, later)]
    assert scores[0].to_list() == scores[1].to_list()


def test_order_is_by_day_then_id() -> None:
    tables = world([(0, "a", day(2)), (0, "b", None), (0, "c", day(1, 9)), (0, "d", day(1, 3))], [(0, "a", day(1))])
    (pool,) = pools(tables["queries"], tables["questions"], tables["memories"])
    assert tables["memories"]["memory"].gather(pool.memories).to_list() == [1003, 1001, 1002, 1004]
    assert pool.visible.tolist() == [3]


def test_only_the_kinds_asked_for_and_a_misspelt_one_is_named() -> None:
    tables = world([(0, "a", None, "turn"), (0, "a", None, "session")], [(0, "a", None)])
    parts = tables["queries"], tables["questions"], tables["memories"]
    assert [p.kind for p in pools(*parts, kinds=("turn",))] == ["turn"]
    with pytest.raises(MemlabError, match="did you mean 'session'"):
        list(pools(*parts, kinds=("sesion",)))
    assert list(pools(*parts[:2], parts[2].clear(), kinds=("turn",))) == []
