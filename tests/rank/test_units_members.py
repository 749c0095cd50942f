"""Units that a live memory keeps, compared with those that are made anew."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from memlab.rank.score import RoutedScore, Score
from memlab.rank.units import FROM, Members
from memlab.store import Store
from tests.rank.rankings import hits, world


class Keeping(Store):
    """A store that keeps indexes, as that of a live memory does."""

    caches_indexes = True

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict = {}

    def cached(self, tables, names, key, make):
        return self.objects.setdefault((key, tables.digest(names)), make())


FOUND = [(0, "d:turn", 2, .9, 1), (0, "d:turn", 0, .1, 2), (0, "l:session", 101, 5.0, 1), (1, "l:session", 103, 3.0, 1),
         (1, "d:turn", 6, .5, 1)]


@pytest.mark.parametrize("stage", [Score(), Score(level="session"), Score(level="turn", method="rrf"),
                                   RoutedScore(routes={"counting": Score(method="rrf")})])
def test_kept_units_rank_as_those_that_are_made_anew(stage: Score | RoutedScore) -> None:
    store = Keeping()
    for some in (FOUND, FOUND[:2], FOUND[2:4], FOUND[4:], FOUND, [*FOUND, (0, "d:turn", 9999, .5, 3)]):
        tables = world().updated({"hits": hits(*some)})
        tables.digest(FROM)
        new, kept = (stage.run(tables.only(stage.reads), one) for one in (Store(), store))
        assert store.objects
        for name in ("units", "ranking"):
            assert_frame_equal(kept[name], new[name])


def test_units_of_tables_that_were_made_for_the_question_are_not_kept() -> None:
    store, tables = Keeping(), world().updated({"hits": hits(*FOUND)})
    tables.digest(FROM)
    Score().run(tables.updated({"memories": tables["memories"].head(9)}), store)
    assert not store.objects


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9)), max_size=20, unique=True), st.data())
def test_each_hit_gets_all_units_of_its_memory(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    table = pl.DataFrame(pairs, schema={"memory": pl.Int64, "unit": pl.Int64}, orient="row")
    asked = data.draw(st.lists(st.integers(-1, 8), max_size=9))
    rows = pl.DataFrame({"memory": asked, "score": np.arange(len(asked)) * 0.5}, schema={"memory": pl.Int64,
                                                                                       "score": pl.Float64})
    order = ["score", "unit"]
    assert_frame_equal(Members.of(pl.DataFrame(), table).by_unit(rows).sort(order),
                       rows.join(table, on="memory").sort(order))
