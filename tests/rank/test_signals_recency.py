from __future__ import annotations

from datetime import date, timedelta
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.harness.sweep import preset
from memlab.rank.signals import Recency
from memlab.store import Store
from tests.rank.rankings import ranking
from tests.rank.signals.worlds import ASKED, boosted, dated, values

SESSIONS = ranking([.9, .5, .1])  # 31, 22 and 0 days old


def test_exp_falls_by_e_in_thirty_days() -> None:
    assert values(Recency(), dated(SESSIONS, "session")) == pytest.approx([exp(-31 / 30), exp(-22 / 30), 1.0])
    assert values(Recency(days=10.0), dated(SESSIONS, "session"))[1] == pytest.approx(exp(-2.2))


def test_updates_of_memorystack_move_forward() -> None:
    level = dated(ranking([.02, .02, .02]), "session", classes={0: ["update"]})  # 31, 22 and 0 days old
    boost = preset("rank/boost=memorystack").boost
    got = boost.run(level.only(boost.reads), Store())["ranking"]
    assert got["unit"].to_list() == [2, 1, 0]
    assert got["score"].to_list() == pytest.approx([.02 + .03 * exp(-age / 30) for age in (0, 22, 31)], abs=1e-6)
    other = dated(ranking([.02, .02, .02]), "session", classes={0: ["factual"]})
    assert boost.run(other.only(boost.reads), Store())["ranking"]["score"].to_list() == pytest.approx([.02] * 3)


def test_linear_has_a_lowest_value() -> None:
    gimli = Recency(form="linear", days=180.0, lowest=.5)
    assert values(gimli, dated(SESSIONS, "session")) == pytest.approx([1 - 31 / 180, 1 - 22 / 180, 1.0])
    steep = Recency(form="linear", days=50.0, lowest=.5)
    assert values(steep, dated(SESSIONS, "session")) == pytest.approx([.5, 1 - 22 / 50, 1.0])


def test_inverted_with_the_factor_0_multiplies_by_the_value() -> None:
    gimli = Recency(form="linear", days=180.0, lowest=.5, inverted=True)
    got = boosted(dated(SESSIONS, "session"), signals=[gimli], factors={"recency": 0.0}, normaliser="none")
    assert dict(got.select("unit", "score").iter_rows()) == pytest.approx(
        {0: .9 * (1 - 31 / 180), 1: .5 * (1 - 22 / 180), 2: .1}, abs=1e-6)


def test_by_the_wall_clock_all_is_old_and_the_day_must_be_told() -> None:
    wall = Recency(clock="wall", now=date(2023, 6, 11))
    assert values(wall, dated(SESSIONS, "session")) == pytest.approx([exp(-n / 30) for n in (41, 32, 10)])
    assert values(Recency(clock="wall", now=date(2020, 1, 1)), dated(SESSIONS, "session")) == [1.0] * 3
    for wrong in ({"clock": "wall"}, {"now": date(2026, 1, 1)}):
        with pytest.raises(ValidationError, match="the day that counts as today"):
            Recency(**wrong)


def test_hours_do_not_count_and_what_has_no_date_has_no_value() -> None:
    tables = dated(ranking([.9, .8]), "memory", said_on=[ASKED + timedelta(hours=12), *[None] * 11])
    sessions = tables["sessions"].with_columns(said_on=None).cast(dict(tables["sessions"].schema))
    assert values(Recency(), tables.updated({"sessions": sessions})) == [1.0, None]
    unasked = tables["questions"].with_columns(asked_on=None).cast(dict(tables["questions"].schema))
    assert values(Recency(), tables.updated({"questions": unasked})) == [None, None]


def test_questions_of_other_classes_have_none() -> None:
    tables = dated(ranking([.9], [.9]), classes={0: ["update"], 1: ["factual"]})
    assert values(Recency(classes=["update"]), tables)[1] is None
    assert values(Recency(classes=["update"]), tables)[0] is not None


@given(st.integers(1, 400), st.integers(0, 3000), st.integers(0, 3000), st.sampled_from(["exp", "linear"]))
def test_younger_is_never_worse_and_values_lie_in_their_bounds(days: int, a: int, b: int, form: str) -> None:
    said = [ASKED - timedelta(days=n) for n in (a, b)] + [None] * 10
    one, two = values(Recency(form=form, days=float(days), lowest=.1),
                      dated(ranking([.9, .8]), "memory", said_on=said))
    assert .1 <= min(one, two) <= max(one, two) <= 1
    assert (one - two) * (b - a) >= 0
