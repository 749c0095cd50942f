"""Signals from relations between memories."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest

from memlab.pipeline.tables import frame
from memlab.stages.rank.boost import Boost
from memlab.stages.rank.signals import Current, Relation
from memlab.stages.rank.units import memory_units, session_units, turn_units
from memlab.store import Store
from tests.stages.write.relations.worlds import DAY, told

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


ENDED = [(3, 0, "SUPERSEDES", 0.8), (2, 1, "CONTRADICTS", 0.75)]


@pytest.mark.parametrize(("asked", "expected"), [(39, 1.0), (40, 0.0), (400, 0.0)])
def test_only_what_was_superseded_by_the_day_of_the_question_counts(asked, expected):
    assert values(Current(), world(ENDED, asked)) | {3: 1.0} == {0: expected, 1: 1.0, 2: 1.0, 3: 1.0}
    dated = told(*ROWS, valid_to=[DAY + timedelta(days=40, hours=9), None, None, None])["memories"]
    by_date = world(ENDED[1:], asked).updated({"memories": dated})
    assert values(Current(), by_date)[0] == expected


def test_confidence_and_class():
    assert values(Current(least_confidence=0.81), world(ENDED))[0] == 1.0
    tables = world(ENDED).updated({"classes": frame("classes", {"question": [0, 0], "class": ["temporal", "update"]})})
    assert values(Current(classes=["update"]), tables)[0] == 0.0
    assert values(Current(classes=["factual"]), tables)[0] == 1.0


def test_a_unit_ends_when_all_that_speak_of_it_alone_have():
    tables = world([(3, 0, "SUPERSEDES", 0.8)], order=(0, 1, 2))
    sessions = tables.updated({"units": session_units(tables["sessions"], tables["turns"])})
    assert values(Current(), sessions) == {0: 1.0, 1: 1.0, 2: 1.0}  # the session says more
    both = world([(3, 0, "SUPERSEDES", 0.8), (3, 1, "SUPERSEDES", 0.8)], order=(0, 1, 2))
    assert values(Current(), both.updated({"units": sessions["units"]})) == {0: 0.0, 1: 1.0, 2: 1.0}


def test_a_session_memory_keeps_no_old_turn():
    tables = world([(3, 0, "SUPERSEDES", 0.8)])
    whole = tables["memories"].head(1).with_columns(
        pl.lit(9, pl.Int64).alias("memory"), pl.lit([0, 1], pl.List(pl.Int32)).alias("turns"),
        pl.lit("session").alias("kind"))
    turns = tables.updated({"memories": pl.concat([tables["memories"], whole]), "units": turn_units(tables["turns"])})
    assert values(Current(), turns) == {0: 0.0, 1: 1.0, 2: 1.0, 3: 1.0}
    alone = turns.updated({"memories": whole, "edges": frame("edges", {
        "source": [9], "target": [9], "kind": ["SUPERSEDES"], "confidence": [1.0]})})
    assert values(Current(), alone)[0] == 0.0  # where nothing speaks of the turn alone, what holds it does


def test_a_floor_filters():
    out = Boost(signals=[Current()], weights={"first": 1.0}, normaliser="none", floors={"current": 1.0}).run(
        world(ENDED), Store())["ranking"]
    assert out["unit"].to_list() == [1, 2, 3]
