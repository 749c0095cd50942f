from __future__ import annotations

from memlab.rank.signals import Relation
from memlab.rank.units import memory_units, session_units
from memlab.tables import frame
from tests.write.relations.worlds import told

ROWS = ((0, 0, "a"), (0, 0, "b"), (1, 10, "c"), (2, 40, "d"))


def world(edges, asked=100, order=(0, 1, 2, 3)):
    tables = told(*ROWS, asked=asked)
    source, target, kind, sure = zip(*edges)
    return tables.updated({
        "edges": frame("edges", {"source": source, "target": target, "kind": kind, "confidence": sure}),
        "units": memory_units(tables["memories"]), "classes": frame("classes", {"question": [], "class": []}),
        "queries": frame("queries", {"query": []}), "ranking": frame("ranking", {
            "question": [0] * len(order), "unit": order, "rank": range(1, len(order) + 1),
            "score": [1 - i / 100 for i in range(len(order))], "selected": [False] * len(order)})})


def values(signal, tables):
    return {unit: round(value, 6) for _, unit, value in signal.values(tables).iter_rows()}


EDGES = [(1, 0, "FOLLOWS", 1.0), (2, 0, "RELATED_TO", 0.9), (3, 2, "SUPERSEDES", 0.85), (3, 2, "CONTRADICTS", 0.75)]


def test_sum_of_weight_times_confidence_by_hand():
    ours = {"FOLLOWS": 1.0, "RELATED_TO": 2.0, "SUPERSEDES": 4.0, "CONTRADICTS": 0.5}
    assert values(Relation(weights=ours), world(EDGES)) == {
        0: 1.0 + 1.8, 1: 1.0, 2: 1.8 + 0.375, 3: 3.4 + 0.375}  # a replacement counts for the newer end alone
    assert values(Relation(weights={"FOLLOWS": 1.0}), world(EDGES)) == {0: 1.0, 1: 1.0, 2: 0.0, 3: 0.0}


def test_what_was_not_said_by_the_day_of_the_question_is_not_known():
    ranked = (0, 1, 2)
    signal = Relation(weights={"SUPERSEDES": 1.0, "CONTRADICTS": 1.0}, among="all")
    assert values(signal, world(EDGES, asked=40, order=ranked))[2] == 0.75  # said on the same day, some hours later
    assert values(signal, world(EDGES, asked=39, order=ranked))[2] == 0.0


def test_pool_and_all():
    signal = {"weights": {"FOLLOWS": 1.0}}
    assert values(Relation(**signal), world(EDGES, order=(1, 2, 3))) == {1: 0.0, 2: 0.0, 3: 0.0}
    assert values(Relation(among="all", **signal), world(EDGES, order=(1, 2, 3))) == {1: 1.0, 2: 0.0, 3: 0.0}
    # the pool is the first ranks; who lies behind it has edges into it, but gives none
    assert values(Relation(first=3, **signal), world(EDGES, order=(1, 2, 3, 0))) == {1: 0.0, 2: 0.0, 3: 0.0, 0: 1.0}


def test_edges_within_a_unit_do_not_count():
    tables = world(EDGES, order=(0, 1, 2))
    sessions = tables.updated({"units": session_units(tables["sessions"], tables["turns"])})
    assert values(Relation(weights={"FOLLOWS": 1.0}), sessions) == {0: 0.0, 1: 0.0, 2: 0.0}
    assert values(Relation(weights={"RELATED_TO": 1.0}), sessions) == {0: 0.9, 1: 0.9, 2: 0.0}
