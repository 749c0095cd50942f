"""Recall over rounds, counted by hand."""

from __future__ import annotations

import polars as pl
import pytest

from memlab.data.beam import Beam
from memlab.evaluate.retrieval import KS
from memlab.evaluate.rounds import round_recall
from memlab.evaluate.summary import averages, per_question
from memlab.store import Store
from tests.data.test_beam import add_chat, batches
from tests.evaluate.test_retrieval import one
from tests.small import arm

U, A = "user", "assistant"
# rounds of session 0: turns 0-2 and 3-4; of session 1: turn 0 (before the user's first), turns 1-2
WORLD = {0: [[U, A, A, U, A], [A, U, A]]}


def test_turns_become_rounds_by_their_first_occurrence(make_world) -> None:
    # units are the turns 0-4 and 5-7; rounds in the order of the ranking: (3, 4), (0-2), (6, 7), (5)
    order = [3, 4, 1, 2, 7, 0, 5, 6]
    tables = make_world(
        WORLD, {0: [(0, 0), (1, 2)], 1: [(0, 0), (0, 2), (1, 0)], 2: [(1, None)], 3: [(0, 3)], 4: [(0, 0), (1, 2)]},
        {**dict.fromkeys(range(4), order), 4: [3, 6, 4]}, unscored=(3,))
    metrics = round_recall(tables)
    assert [one(metrics, 0, f"round/recall@{k}") for k in (1, 3, 5)] == [0, 1, 1]
    assert [one(metrics, 1, f"round/recall@{k}") for k in (1, 3, 5)] == [0, .5, 1]  # two turns in a round count once
    assert metrics["round/recall@50"].to_list() == [1, 1, None, None, .5]  # the last ranking does not hold all rounds


def test_the_rounds_of_one_passage_share_the_last_of_their_places(make_world) -> None:
    spans = [(0, 0, [0, 1, 2, 3]), (0, 1, [1, 2]), (0, 1, [0])]
    tables = make_world(WORLD, {0: [(0, 0), (1, 0)]}, {0: [0, 1, 2]}, level="memory", spans=spans)
    metrics = round_recall(tables)  # places 2, 2, 3 and 4
    assert [one(metrics, 0, f"round/recall@{k}") for k in (1, 3, 5)] == [0, .5, 1]


def test_an_unknown_document_keeps_its_place(make_world) -> None:
    tables = make_world(WORLD, {0: [(0, 0)]}, {0: [7, 0]})
    turns = pl.col("turns").list.head((pl.col("unit") != 7).cast(pl.Int64))  # unit 7 has none
    tables = tables.updated({"units": tables["units"].with_columns(turns)})
    assert [one(round_recall(tables), 0, f"round/recall@{k}") for k in (1, 3)] == [0, 1]


def test_only_data_that_count_rounds_have_the_metric(make_random_world, tmp_path) -> None:
    assert round_recall(make_random_world(1, level="session")).columns == ["question"]
    world = make_random_world(1, questions=8)
    plain, counted = per_question(world), per_question(world, rounds=True)
    assert counted.select(plain.columns).equals(plain)
    assert [n for n in counted.columns if n not in plain.columns] == [f"round/recall@{k}" for k in KS]
    # each turn of these worlds is a user's, and so a round
    assert averages(counted)["round/recall@10"] == pytest.approx(averages(counted)["turn/recall@10"])
    add_chat(tmp_path / "100K" / "1", batches())
    folder = arm(tmp_path, data=Beam(path=tmp_path)).run(Store(None))
    assert {"turn/recall@10", "round/recall@10"} <= set(pl.read_parquet(folder / "questions.parquet").columns)
