"""Units: those that a live memory keeps, and roll-ups of small ones to larger ones."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from memlab.stages.rank.score import RoutedScore, Score
from memlab.stages.rank.units import FROM, Members, Rollup, memory_units, rank_units, session_units, turn_units
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.rank.rankings import hits, ranking, world


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


STORE = Store()


def rolled(stage: Rollup, scores: dict[int, float], units=None) -> dict[int, float]:
    """Roll up one question over corpus 0: unit (turn) -> score."""
    tables = world()
    one = {"question": [0] * len(scores), "unit": list(scores), "score": list(scores.values())}
    table = rank_units(pl.DataFrame(one, schema={"question": pl.Int32, "unit": pl.Int64, "score": pl.Float64}))
    units = turn_units(tables["turns"]) if units is None else units
    made = stage.run(tables.updated({"ranking": table, "units": units}).only(stage.reads), STORE)
    assert made["ranking"]["rank"].to_list() == list(range(1, made["ranking"].height + 1))
    return dict(made["ranking"].select("unit", "score").iter_rows())


# turns 0, 1 are session 0; 2, 3, 4 session 1; 5 session 2
SCORES = {2: .9, 0: .8, 3: .7, 4: .2, 1: .1, 5: .05}


def test_max() -> None:
    assert rolled(Rollup(method="max"), SCORES) == {1: .9, 0: .8, 2: .05}


def test_mean_of_the_best() -> None:
    got = rolled(Rollup(method="mean_top", top=2), SCORES)
    assert got == pytest.approx({1: .8, 0: .45, 2: .05})


def test_dcg_sum_counts_the_first_ranks_and_orders_the_rest_below_zero() -> None:
    got = rolled(Rollup(method="dcg_sum", top_n=3), SCORES)
    assert got == pytest.approx({1: 1 + 1 / math.log2(4), 0: 1 / math.log2(3),
                                 2: 1 / math.log2(7) - 1 / math.log2(4)}, abs=1e-6)
    every = rolled(Rollup(method="dcg_sum", top_n=None), SCORES)
    assert every[1] == pytest.approx(1 + 1 / 2 + 1 / math.log2(5), abs=1e-6)


def test_logsumexp() -> None:
    got = rolled(Rollup(method="logsumexp", temperature=.5), SCORES)
    assert got[0] == pytest.approx(.5 * math.log(math.exp(.8 / .5) + math.exp(.1 / .5)), abs=1e-6)
    assert got[2] == pytest.approx(.05, abs=1e-6)


def test_memories_roll_up_to_turns_and_sessions_do_not() -> None:
    units = memory_units(world()["memories"])
    got = rolled(Rollup(to="turn"), {101: .9, 3: 1.0, 0: .5}, units)
    assert got == {3: 1.0, 2: .9, 4: .9, 0: .5}
    with pytest.raises(MemlabError, match="cannot be rolled up to turns"):
        rolled(Rollup(to="turn"), SCORES, session_units(world()["sessions"], world()["turns"]))


def test_signals_take_the_highest_and_units_become_sessions() -> None:
    tables = world()
    table = rank_units(ranking([.3, .2, .1]).drop("rank", "selected").with_columns(lane=pl.Series([None, 5.0, 4.0])))
    made = Rollup().run(tables.updated({"ranking": table, "units": turn_units(tables["turns"])}), STORE)
    assert made["ranking"].select("unit", "lane").rows() == [(0, 5.0), (1, 4.0)]
    assert made["units"]["level"].unique().to_list() == ["session"]


@given(st.dictionaries(st.integers(0, 5), st.integers(-40, 40).map(lambda i: i / 8), min_size=1),
       st.sampled_from(["max", "dcg_sum", "mean_top", "logsumexp"]))
def test_every_session_of_a_ranked_turn_is_ranked_once(scores, method) -> None:
    session = {0: 0, 1: 0, 2: 1, 3: 1, 4: 1, 5: 2}
    got = rolled(Rollup(method=method, top_n=2), scores)
    assert set(got) == {session[u] for u in scores}
