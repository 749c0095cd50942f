from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.pipeline.tables import SCHEMAS, Tables, frame
from memlab.stages.search.neighbours import Neighbours, best_hits
from memlab.store import Store
from tests.stages.search.world import day, world

SESSIONS = frame("sessions", {"corpus": [0, 1], "session": [0, 0], "said_on": [day(0), day(0)]})


def found(tables: Tables, *memories: int, lane: str = "bm25:turn", query: int = 10) -> Tables:
    """The tables with hits of one query, best first."""
    n = len(memories)
    return tables.updated({"hits": pl.DataFrame({
        "query": [query] * n, "lane": [lane] * n, "memory": list(memories), "score": [float(n - i) for i in range(n)],
        "rank": list(range(1, n + 1))}, schema=SCHEMAS["hits"])})


def linked(tables: Tables, *edges: tuple[int, int, str, float], entities=(), links=()) -> Tables:
    return tables.updated({
        "sessions": SESSIONS,
        "edges": pl.DataFrame(list(edges), schema=SCHEMAS["edges"], orient="row"),
        "entities": frame("entities", {"corpus": [0] * len(entities), "session": [0] * len(entities),
                                       "name": list(entities), "kind": ["person"] * len(entities),
                                       "summary": [""] * len(entities)}),
        "links": frame("links", {"corpus": [0] * len(links), "session": [0] * len(links),
                                 "source": [a for a, _ in links], "relation": ["knows"] * len(links),
                                 "target": [b for _, b in links], "said_on": [None] * len(links)})})


def hits(stage: Neighbours, tables: Tables) -> list[tuple[int, str, int, float]]:
    made = stage.run(tables.only(stage.reads), Store())
    assert set(made) == {"hits"}
    return list(made["hits"].select("query", "lane", "memory", "score").iter_rows())


def three(question: str = "Where is Ann?", asked: int | None = 9) -> Tables:
    """Memories 1003, 1002, 1001, told on days 1, 2 and 3."""
    said = [(0, "I saw Ann Lee.", day(1)), (0, "Bob is her brother.", day(2)), (0, "It rained.", day(3))]
    return world(said, [(0, question, day(asked))])


def test_neighbours_of_hits_become_hits_both_ways() -> None:
    tables = linked(found(three(), 1002), (1002, 1003, "SUPERSEDES", .5), (1001, 1002, "FOLLOWS", 1.0))
    assert hits(Neighbours(), tables) == [(10, "neighbours:turn", 1003, 1.0), (10, "neighbours:turn", 1001, .5)]
    assert hits(Neighbours(relations=0.0), tables) == []


def test_the_better_the_hit_the_more_its_neighbours_count_and_only_the_best_count() -> None:
    edges = (1003, 1001, "RELATED_TO", 1.0), (1002, 1003, "RELATED_TO", 1.0)
    tables = linked(found(three(), 1001, 1002), *edges)
    assert hits(Neighbours(), tables) == [(10, "neighbours:turn", 1003, 1.0)]
    tables = linked(found(three(), 1002, 1003), *edges)
    # 1003 beside rank 1; 1001 and 1002 beside rank 2
    assert hits(Neighbours(), tables) == [(10, "neighbours:turn", 1003, 1.0), (10, "neighbours:turn", 1001, .5),
                                          (10, "neighbours:turn", 1002, .5)]
    assert [h[2] for h in hits(Neighbours(seeds=1), tables)] == [1003]


def test_memories_that_name_the_questions_entities_or_those_related_become_hits() -> None:
    tables = linked(found(three()), entities=["Ann Lee", "Bob"], links=[("Ann Lee", "Bob")])
    both = [(10, "neighbours:turn", 1003, 1.0), (10, "neighbours:turn", 1002, .5)]
    assert hits(Neighbours(), tables) == both
    assert hits(Neighbours(hops=0), tables) == both[:1]
    assert hits(Neighbours(entities=0.0), tables) == []
    assert hits(Neighbours(), linked(found(three("Did it rain?")), entities=["Ann Lee", "Bob"])) == []


@pytest.mark.parametrize("asked", [1, 2, 3, None])
def test_what_is_said_later_is_no_neighbour(asked: int | None) -> None:
    edges = (1001, 1003, "RELATED_TO", 1.0), (1002, 1003, "RELATED_TO", 1.0)
    tables = linked(found(three(asked=asked), 1003), *edges, entities=["Ann Lee", "Bob"], links=[("Ann Lee", "Bob")])
    seen = {memory for memory, n in ((1003, 1), (1002, 2), (1001, 3)) if asked is None or n <= asked}
    assert {h[2] for h in hits(Neighbours(), tables)} <= seen


@given(st.lists(st.tuples(st.sampled_from("ab"), st.permutations([1001, 1002, 1003])), min_size=1, max_size=3,
                unique_by=lambda lane: lane[0]))
def test_best_hits_are_those_of_reciprocal_rank_fusion(lanes) -> None:
    parts = [found(three(), *order, lane=f"{name}:turn")["hits"] for name, order in lanes]
    expected = {m: sum(1 / (61 + order.index(m)) for _, order in lanes) for m in (1001, 1002, 1003)}
    best = best_hits(three().updated({"hits": pl.concat(parts)}), 3)[0]
    assert all(expected[a] > expected[b] or math.isclose(expected[a], expected[b], abs_tol=1e-8)
               for a, b in zip(best, best[1:]))
