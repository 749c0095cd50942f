"""Measures of an order are made once for arms that differ in selection alone, and never see the selection."""

from __future__ import annotations

import polars as pl

from memlab.evaluate.summary import SIZE, by_order
from memlab.tables import Tables


def counted(calls: list[Tables]):
    @by_order
    def measure(tables: Tables) -> float:
        calls.append(tables)
        return float(tables["ranking"]["rank"].sum())

    return measure


def selecting(tables: Tables, k: int) -> Tables:
    return tables.updated({"ranking": tables["ranking"].with_columns(selected=pl.col("rank") <= k)})


def test_arms_that_differ_in_selection_are_measured_once(make_random_world) -> None:
    calls: list[Tables] = []
    measure, world = counted(calls), make_random_world(3)
    assert measure(selecting(world, 1)) == measure(selecting(world, 4))
    assert len(calls) == 1
    assert not calls[0]["ranking"]["selected"].any()
    assert "context" not in calls[0]


def test_another_order_or_other_gold_is_measured_anew(make_random_world) -> None:
    calls: list[Tables] = []
    measure, world = counted(calls), make_random_world(3)
    measure(world)
    measure(world.updated({"ranking": world["ranking"].filter(pl.col("rank") <= 2)}))
    measure(world.updated({"evidence": world["evidence"].head(1)}))
    measure(world)
    assert len(calls) == 3


def test_what_is_remembered_is_bounded(make_random_world) -> None:
    calls: list[Tables] = []
    measure, worlds = counted(calls), [make_random_world(seed) for seed in range(SIZE + 1)]
    for world in [*worlds, worlds[0]]:
        measure(world)
    assert len(calls) == SIZE + 2
