from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.stages.rank.rerank import Rerank
from memlab.stages.rank.units import memory_units, session_units, turn_units
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.rank.rankings import TURNS, body, ranking, world


class Wanted:
    """A pair scorer that likes some passages, and notes what it was asked."""

    def __init__(self, liked: dict[str, float]) -> None:
        self.liked, self.seen = liked, []

    def identity(self) -> dict[str, object]:
        return {"is": "Wanted", "liked": sorted(self.liked.items())}

    def score(self, queries, passages, pairs) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        self.seen += [(queries[q], passages[p]) for q, p in pairs]
        yield np.arange(len(pairs)), np.array([self.liked.get(passages[p], 0.0) for _, p in pairs], np.float32)


def run(stage: Rerank, table: pl.DataFrame, units=None) -> pl.DataFrame:
    tables = world()
    units = turn_units(tables["turns"]) if units is None else units
    with tempfile.TemporaryDirectory() as folder:  # nothing is remembered from test to test
        return stage.run(tables.updated({"ranking": table, "units": units}).only(stage.reads), Store(Path(folder)))[
            "ranking"]


def test_only_the_pool_is_reordered_and_the_rest_follows() -> None:
    liked = {f"Ann: {body(0, 1, 0)}": 2.0, f"Ann: {body(0, 0, 1)}": 1.0, f"Ann: {body(0, 2, 0)}": 9.0}
    scorer = Wanted(liked)
    got = run(Rerank(scorer=scorer, pool=3), ranking([.9, .8, .7, .6, .5, .1]))
    assert got["unit"].to_list() == [2, 1, 0, 3, 4, 5]
    assert got["rerank"].to_list() == [2, 1, 0, None, None, None]
    assert scorer.seen == [("How many plants did I buy?", f"Ann: {body(0, 0, 0)}"),
                           ("How many plants did I buy?", f"Ann: {body(0, 0, 1)}"),
                           ("How many plants did I buy?", f"Ann: {body(0, 1, 0)}")]
    # below the pool the old distances stand, and no drop appears at its edge
    assert got["score"].diff().to_list()[3:] == pytest.approx([-1e-6, -.1, -.4])


def test_a_session_takes_its_best_turn_and_roles_choose_what_is_read() -> None:
    tables = world()
    units = session_units(tables["sessions"], tables["turns"])
    liked = {f"Ann: {body(0, 1, 1)}": 5.0, f"Ann: {body(0, 0, 0)}": 1.0}  # rows 3 (assistant) and 0 (user)
    assert run(Rerank(scorer=Wanted(liked)), ranking([3, 2, 1]), units)["unit"].to_list() == [1, 0, 2]
    users = run(Rerank(scorer=Wanted(liked), roles=["user"]), ranking([3, 2, 1]), units)
    assert users["unit"].to_list() == [0, 1, 2]
    assert users.sort("unit")["rerank"].to_list() == [1, 0, None]  # session 2 has one turn, the assistant's


def test_speakers_that_are_unknown_are_not_named_and_memories_show_their_key() -> None:
    scorer = Wanted({})
    table = ranking([], [1.0]).with_columns(unit=pl.lit(6, pl.Int64))
    run(Rerank(scorer=scorer), table)
    run(Rerank(scorer=scorer), table.with_columns(unit=pl.lit(101, pl.Int64)), memory_units(world()["memories"]))
    assert [p for _, p in scorer.seen] == [body(1, 0, 0), body(0, 1, 0)]


def test_the_first_stage_can_be_mixed_in_and_the_signal_named() -> None:
    liked = {f"Ann: {body(0, 0, 1)}": 1.0}
    table = ranking([.9, .5, .0])
    got = run(Rerank(scorer=Wanted(liked), weights={"rerank": 1, "first": 3}, normaliser="minmax",
                     name="cross_encoder"), table)
    assert dict(got.select("unit", "score").iter_rows()) == pytest.approx({0: 3.0, 1: 1 + 5 / 3, 2: 0.0}, abs=1e-6)
    assert "cross_encoder" in got.columns
    assert "rerank" not in got.columns


def test_lanes_can_be_weighed_by_name_and_unknown_names_are_refused() -> None:
    table = ranking([.9, .5], **{"dense:turn": [0.0, 1.0]})
    got = run(Rerank(scorer=Wanted({}), weights={"rerank": 1, "dense": 1}), table)
    assert got["unit"].to_list() == [1, 0]
    with pytest.raises(MemlabError, match="did you mean 'first'"):
        run(Rerank(scorer=Wanted({}), weights={"fist": 1}), table)
    with pytest.raises(ValidationError, match="no weight is above 0"):
        Rerank(scorer=Wanted({}), weights={"rerank": 0})
    with pytest.raises(MemlabError, match="a signal 'dense:turn' already"):
        run(Rerank(scorer=Wanted({}), name="dense:turn"), table)


@given(st.lists(st.integers(-5, 5).map(float), min_size=6, max_size=6), st.integers(1, 7))
def test_a_rerank_is_a_permutation_of_the_pool(likes, pool) -> None:
    liked = {f"Ann: {body(*TURNS[i])}": x for i, x in enumerate(likes)}
    got = run(Rerank(scorer=Wanted(liked), pool=pool), ranking([.6, .5, .4, .3, .2, .1]))
    assert sorted(got["unit"][:pool]) == list(range(6))[:pool]
    assert got["unit"][pool:].to_list() == list(range(6))[pool:]
    assert got["unit"][:pool].to_list() == sorted(range(min(pool, 6)), key=lambda i: (-likes[i], i))
    assert got["score"].is_sorted(descending=True)
