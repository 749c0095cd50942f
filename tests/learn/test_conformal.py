from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.synthetic.dataset import Synthetic
from memlab.learn.conformal import ConformalSelect, smallest_knob
from memlab.store import Store
from memlab.tables import Tables, frame
from tests.learn.worlds import world
from tests.small import lexical

INF = float("inf")


def by_hand(critical: list[float], group: list[int], alpha: float) -> float:
    """The smallest critical value at which the corrected mean risk of the groups is at most alpha."""
    members = {g: [c for c, h in zip(critical, group) if h == g] for g in group}
    for knob in sorted({c for c in critical if c < INF}):
        risk = sum(sum(c > knob for c in m) / len(m) for m in members.values())
        if (risk + 1) / (len(members) + 1) <= alpha + 1e-12:
            return knob
    return INF


@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 3.0, 7.0, INF]), st.integers(0, 5)), min_size=1, max_size=25),
       st.sampled_from([.1, .25, .4, .5, .75, .9]))
def test_the_knob_is_the_smallest_that_controls_the_corrected_risk(rows, alpha) -> None:
    critical, group = [c for c, _ in rows], [g for _, g in rows]
    assert smallest_knob(np.array(critical), np.array(group), alpha) == by_hand(critical, group, alpha)


def test_few_groups_allow_no_small_alpha() -> None:
    easy = np.ones(5)
    assert smallest_knob(easy, np.arange(5), alpha=1 / 6 + .001) == 1
    assert smallest_knob(easy, np.arange(5), alpha=1 / 6 - .001) == INF


def chosen(tables: Tables, **options) -> pl.DataFrame:
    rule = ConformalSelect(**options)
    return rule.run(tables.only(rule.reads), Store())["ranking"]


def complete(ranking: pl.DataFrame, tables: Tables) -> pl.DataFrame:
    """Questions of ``worlds.world`` with evidence, and whether all of it is selected."""
    places = tables["units"].select("unit", "session", turn=pl.col("turns").list.first())
    held = ranking.join(places, on="unit").join(tables["evidence"], on=["question", "session", "turn"])
    return held.group_by("question").agg(pl.col("selected").all().alias("complete"))


@pytest.mark.parametrize("of", ["rank", "mass"])
@pytest.mark.parametrize("alpha", [.1, .3, .5])
def test_the_realised_risk_is_near_alpha_and_not_far_above(of, alpha) -> None:
    tables = world(questions=400)
    outcome = complete(chosen(tables, alpha=alpha, of=of, by="question"), tables)
    risk = 1 - outcome["complete"].mean()
    assert risk <= alpha + .02
    assert risk >= alpha - (.05 if of == "mass" else .1)  # K is one of 15 numbers


def test_the_own_group_has_no_part_in_the_choice() -> None:
    tables = world(questions=40)
    evidence = tables["evidence"]
    hard = pl.concat([evidence.filter(pl.col("question") != 3),
                      frame("evidence", {"question": [3] * 15, "session": [i // 5 for i in range(15)],
                                         "turn": [i % 5 for i in range(15)]})])
    before = chosen(tables, alpha=.3, of="mass", by="question")
    after = chosen(tables.updated({"evidence": hard}), alpha=.3, of="mass", by="question")
    own = pl.col("question") == 3
    assert before.filter(own).equals(after.filter(own))
    assert not before.equals(after)


def test_where_nothing_controls_the_risk_all_is_shown_and_marked() -> None:
    tables = world(questions=6)
    ranking = chosen(tables, alpha=.01, by="question", max_k=9)
    assert ranking["unreachable"].unique().to_list() == [1.0]
    assert ranking["selected"].sum() == 6 * 9
    assert chosen(tables, alpha=.9, by="question")["unreachable"].unique().to_list() == [0.0]


def test_a_smaller_alpha_shows_more_and_the_mass_differs_by_question(tmp_path) -> None:
    tables = lexical().run(Synthetic(lives=6, questions=6).load(), Store(tmp_path))
    for of in ("rank", "mass"):
        rules = list(ConformalSelect(of=of, max_k=60).variations())
        sizes = [rule.run(tables, Store())["ranking"]["selected"].sum() for rule in rules[::8]]
        assert sizes == sorted(sizes)
        assert sizes[-1] > 2 * sizes[0]
    k = rules[20].run(tables, Store())["ranking"].group_by("question").agg(pl.col("selected").sum())["selected"]
    assert k.n_unique() > 5
