"""Signals over the small world: what each says of a unit."""

from __future__ import annotations

from datetime import date, timedelta
from math import exp

import polars as pl
import pytest
from pydantic import ValidationError

from memlab.experiment.config.instantiate import choice_settings, construct
from memlab.experiment.harness.sweep import preset
from memlab.stages.rank import signals
from memlab.store import Store
from tests.stages.rank.rankings import ranking
from tests.stages.rank.signals.worlds import ASKED, boosted, dated, order, values

# memories 0 .. 7 are the turns, 100 .. 103 the sessions


def test_a_turn_stands_for_the_memories_that_name_it() -> None:
    got = signals.on_units(dated(ranking([.9, .8, .7])))
    assert got.rows() == [(0, 0, 0), (0, 0, 100), (0, 1, 1), (0, 1, 100), (0, 2, 2), (0, 2, 101)]


def test_a_session_stands_for_all_of_its_memories_and_a_memory_for_itself() -> None:
    table = ranking([.9]).with_columns(unit=pl.lit(1, pl.Int64))
    assert signals.on_units(dated(table, "session"))["memory"].to_list() == [2, 3, 4, 101]
    table = ranking([.9, .8]).with_columns(unit=pl.Series([101, 3], dtype=pl.Int64))
    assert signals.on_units(dated(table, "memory")).rows() == [(0, 3, 3), (0, 101, 101)]


def test_only_ranked_units_are_there_and_what_is_said_later_is_not() -> None:
    one = dated(ranking([], [.9]).with_columns(unit=pl.lit(7, pl.Int64)))
    assert signals.on_units(one).rows() == [(1, 7, 7), (1, 7, 103)]
    late = [ASKED + timedelta(days=m == 100, hours=5) for m in [*range(8), *range(100, 104)]]
    got = signals.on_units(dated(ranking([.9]), said_on=late))
    assert got["memory"].to_list() == [0]  # the same day counts, whatever the hour
    assert signals.on_units(dated(ranking([.9]), said_on=[None] * 12))["memory"].to_list() == [0, 100]


def test_any_class_of_a_question_will_do() -> None:
    tables = dated(ranking([.9], [.8]), classes={0: ["temporal", "update"], 1: ["factual"]})
    assert signals.questions_of(tables, ["update"])["question"].to_list() == [0]
    assert signals.questions_of(tables, [])["question"].to_list() == [0, 1]
    none = pl.DataFrame(schema={"question": pl.Int32, "unit": pl.Int64})
    assert signals.flag_units(tables, none, ["update"], 1.0)["value"].to_list() == [0.0, 1.0]


TYPED = [None, "preference", *[None] * 10]
SAID = ["conversation", "user", "user", "assistant", *["conversation"] * 8]
ADVICE = {0: ["temporal", "preference"]}


def test_typed_memories_are_flagged_for_their_class_alone() -> None:
    liked = signals.Category(name="preference", classes=["preference"], categories=["preference"])
    table = ranking([.9, .8, .7])
    assert values(liked, dated(table, classes=ADVICE, category=TYPED)) == [0, 1, 0]
    assert values(liked, dated(table, classes={0: ["factual"]}, category=TYPED)) == [0, 0, 0]
    assert values(liked, dated(table, category=TYPED)) == [0, 0, 0]


def test_the_source_is_what_an_extractor_told_else_the_role_of_the_turns() -> None:
    spoken = signals.Category(name="assistant", sources=["assistant"])
    # by role: turns 1, 3 and 5; of the told memories 1 is the user's, though its turn is the assistant's
    assert values(spoken, dated()) == [0, 1, 0, 1, 0, 1]
    assert values(spoken, dated(source=SAID)) == [0, 0, 0, 1, 0, 1]
    assert values(spoken, dated(ranking([.9, .8, .7]), "session", source=SAID)) == [0, 1, 1]
    assert values(spoken, dated(ranking([.9, .8, .7]), "memory", source=SAID)) == [0, 0, 0]


def test_as_a_factor_it_lifts() -> None:
    liked = signals.Category(name="preference", classes=["preference"], categories=["preference"])
    got = boosted(dated(classes=ADVICE, category=TYPED), signals=[liked], factors={"preference": 1.3},
                  normaliser="none")
    assert got["unit"].to_list()[:2] == [1, 0]
    assert got["score"].to_list()[:2] == pytest.approx([.65, .6])


def test_as_a_floor_it_filters_the_questions_of_its_class() -> None:
    only = signals.Category(name="allowed", classes=["assistant"], sources=["assistant"], otherwise=1.0)
    settings = {"signals": [only], "floors": {"allowed": 1.0}, "normaliser": "none"}
    assert order(dated(classes={0: ["assistant"]}), **settings) == [1, 3, 5]
    assert order(dated(classes={0: ["factual"]}), **settings) == [0, 1, 2, 3, 4, 5]


def test_a_sort_must_be_named() -> None:
    with pytest.raises(ValidationError, match="give categories or sources"):
        signals.Category(name="nothing")


SOURCES = [*["conversation"] * 5, "user", *["conversation"] * 6]


def filed():
    """The fifth turn is read from a file, and so is the memory of its session, which stands for three turns."""
    tables = dated(source=SOURCES)
    spoken = pl.Series("speaker", ["Notes/x.MD" if row == 4 else None for row in range(tables["turns"].height)],
                       pl.String)
    turns = tables["turns"].sort("corpus", "session", "turn").with_columns(spoken)
    return tables.updated({"turns": turns})


def test_documents_come_before_talk() -> None:
    assert values(signals.Source(), filed()) == [0, 0, 1, 1, 1, 0]


def test_sources_may_be_graded() -> None:
    graded = signals.Source(speakers={".md": .9}, sources={"user": .5, "conversation": .1})
    assert values(graded, filed()) == [.1, .1, .9, .9, .9, .5]


def test_a_filter_keeps_documents_alone() -> None:
    fields = choice_settings("rank/boost/source_only")
    faults: list[str] = []
    boost = construct(fields, "rank.boost", faults)
    assert faults == []
    kept = boost.run(filed(), Store())["ranking"].sort("question", "rank")
    assert kept.filter(question=0)["unit"].to_list() == [u for u in order(filed(), weights={"first": 1})
                                                         if u in (2, 3, 4)]


TOLD = [.1, None, .9, None, None, None, None, None, .3, None, None, None]  # memories 0, 2 and 100


def test_the_most_important_memory_speaks_for_a_unit() -> None:
    table = ranking([.9, .8, .7, .6])
    assert values(signals.Importance(), dated(table, importance=TOLD)) == [.3, .3, .9, None]
    assert values(signals.Importance(), dated(table, "memory", importance=TOLD)) == [.1, None, .9, None]
    assert values(signals.Importance(), dated(ranking([.9, .8, .7]), "session", importance=TOLD)) == [.3, .9, None]


SESSIONS = ranking([.9, .5, .1])  # 31, 22 and 0 days old


def test_exp_falls_by_e_in_thirty_days() -> None:
    assert values(signals.Recency(), dated(SESSIONS, "session")) == pytest.approx([exp(-31 / 30), exp(-22 / 30), 1.0])
    assert values(signals.Recency(days=10.0), dated(SESSIONS, "session"))[1] == pytest.approx(exp(-2.2))


def test_updates_of_memorystack_move_forward() -> None:
    level = dated(ranking([.02, .02, .02]), "session", classes={0: ["update"]})  # 31, 22 and 0 days old
    boost = preset("rank/boost=memorystack").boost
    got = boost.run(level.only(boost.reads), Store())["ranking"]
    assert got["unit"].to_list() == [2, 1, 0]
    assert got["score"].to_list() == pytest.approx([.02 + .03 * exp(-age / 30) for age in (0, 22, 31)], abs=1e-6)
    other = dated(ranking([.02, .02, .02]), "session", classes={0: ["factual"]})
    assert boost.run(other.only(boost.reads), Store())["ranking"]["score"].to_list() == pytest.approx([.02] * 3)


def test_linear_has_a_lowest_value() -> None:
    gimli = signals.Recency(form="linear", days=180.0, lowest=.5)
    assert values(gimli, dated(SESSIONS, "session")) == pytest.approx([1 - 31 / 180, 1 - 22 / 180, 1.0])
    steep = signals.Recency(form="linear", days=50.0, lowest=.5)
    assert values(steep, dated(SESSIONS, "session")) == pytest.approx([.5, 1 - 22 / 50, 1.0])


def test_inverted_with_the_factor_0_multiplies_by_the_value() -> None:
    gimli = signals.Recency(form="linear", days=180.0, lowest=.5, inverted=True)
    got = boosted(dated(SESSIONS, "session"), signals=[gimli], factors={"recency": 0.0}, normaliser="none")
    assert dict(got.select("unit", "score").iter_rows()) == pytest.approx(
        {0: .9 * (1 - 31 / 180), 1: .5 * (1 - 22 / 180), 2: .1}, abs=1e-6)


def test_by_the_wall_clock_all_is_old_and_the_day_must_be_told() -> None:
    wall = signals.Recency(clock="wall", now=date(2023, 6, 11))
    assert values(wall, dated(SESSIONS, "session")) == pytest.approx([exp(-n / 30) for n in (41, 32, 10)])
    assert values(signals.Recency(clock="wall", now=date(2020, 1, 1)), dated(SESSIONS, "session")) == [1.0] * 3
    for wrong in ({"clock": "wall"}, {"now": date(2026, 1, 1)}):
        with pytest.raises(ValidationError, match="the day that counts as today"):
            signals.Recency(**wrong)


def test_hours_do_not_count_and_what_has_no_date_has_no_value() -> None:
    tables = dated(ranking([.9, .8]), "memory", said_on=[ASKED + timedelta(hours=12), *[None] * 11])
    sessions = tables["sessions"].with_columns(said_on=None).cast(dict(tables["sessions"].schema))
    assert values(signals.Recency(), tables.updated({"sessions": sessions})) == [1.0, None]
    unasked = tables["questions"].with_columns(asked_on=None).cast(dict(tables["questions"].schema))
    assert values(signals.Recency(), tables.updated({"questions": unasked})) == [None, None]


def test_questions_of_other_classes_have_none() -> None:
    tables = dated(ranking([.9], [.9]), classes={0: ["update"], 1: ["factual"]})
    assert values(signals.Recency(classes=["update"]), tables)[1] is None
    assert values(signals.Recency(classes=["update"]), tables)[0] is not None


def test_an_experiment_has_no_votes_and_nothing_was_returned_before() -> None:
    assert values(signals.Feedback(), dated()) == [.5] * 6
    assert values(signals.AccessCount(), dated()) == [0] * 6
    weights = {"first": .9, "feedback": .1, "accesses": .05}
    both = [signals.Feedback(), signals.AccessCount()]
    assert order(dated(), signals=both, normaliser="minmax", weights=weights) == dated()["ranking"]["unit"].to_list()
