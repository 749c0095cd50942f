from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given

from memlab.evaluate.evidence import shown_turns
from memlab.read.pack import ByRank, FullContext
from memlab.store import Store
from memlab.tables import Tables
from tests.read.world import world, worlds

TALK = [[("user", "yes"), ("assistant", "yes, so"), ("user", "so\n\nuser: yes"), ("assistant", "no")], [("user", "no")]]
# units: 0 to 3 in session 0, 4 in session 1


@pytest.mark.parametrize(("pack", "turns"), [
    (ByRank(), [(0, 2), (1, 0)]), (ByRank(value="round"), [(0, 2), (0, 3), (1, 0)]),
    (ByRank(value="session"), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]),
    (FullContext(), [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]), (FullContext(max_tokens=10), [(1, 0)])])
def test_the_turns_that_are_shown(pack, turns: list[tuple[int, int]]) -> None:
    tables = world(TALK, [4, 2])
    tables = tables.updated(pack.run(tables.only(pack.reads), Store()))
    found = shown_turns(tables["context"], tables.only(("texts", "turns", "units")))
    # "yes" alone is quoted word for word in turn 2: the one thing that cannot be told apart
    quoted = {(0, 0)} if (0, 2) in turns else set()
    assert {(s, t) for _, s, t in found.rows()} == {*turns} | quoted


@given(worlds())
def test_units_that_show_themselves_are_all_there_is(tables: Tables) -> None:
    out = tables.updated(ByRank().run(tables, Store()))
    picked = tables["ranking"].filter("selected").join(tables["units"], on="unit")
    assert shown_turns(out["context"], out).select("session", "turn").rows() == picked.select(
        "session", pl.col("turns").list.first()).sort("session", "turns").rows()
