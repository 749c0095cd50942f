from __future__ import annotations

import pytest
from pydantic import ValidationError

from memlab.rank.signals import Category
from tests.rank.rankings import ranking
from tests.rank.signals.worlds import boosted, dated, order, values

TYPED = [None, "preference", *[None] * 10]
SAID = ["conversation", "user", "user", "assistant", *["conversation"] * 8]
ADVICE = {0: ["temporal", "preference"]}


def test_typed_memories_are_flagged_for_their_class_alone() -> None:
    liked = Category(name="preference", classes=["preference"], categories=["preference"])
    table = ranking([.9, .8, .7])
    assert values(liked, dated(table, classes=ADVICE, category=TYPED)) == [0, 1, 0]
    assert values(liked, dated(table, classes={0: ["factual"]}, category=TYPED)) == [0, 0, 0]
    assert values(liked, dated(table, category=TYPED)) == [0, 0, 0]


def test_the_source_is_what_an_extractor_told_else_the_role_of_the_turns() -> None:
    spoken = Category(name="assistant", sources=["assistant"])
    # by role: turns 1, 3 and 5; of the told memories 1 is the user's, though its turn is the assistant's
    assert values(spoken, dated()) == [0, 1, 0, 1, 0, 1]
    assert values(spoken, dated(source=SAID)) == [0, 0, 0, 1, 0, 1]
    assert values(spoken, dated(ranking([.9, .8, .7]), "session", source=SAID)) == [0, 1, 1]
    assert values(spoken, dated(ranking([.9, .8, .7]), "memory", source=SAID)) == [0, 0, 0]


def test_as_a_factor_it_lifts() -> None:
    liked = Category(name="preference", classes=["preference"], categories=["preference"])
    got = boosted(dated(classes=ADVICE, category=TYPED), signals=[liked], factors={"preference": 1.3},
                  normaliser="none")
    assert got["unit"].to_list()[:2] == [1, 0]
    assert got["score"].to_list()[:2] == pytest.approx([.65, .6])


def test_as_a_floor_it_filters_the_questions_of_its_class() -> None:
    only = Category(name="allowed", classes=["assistant"], sources=["assistant"], otherwise=1.0)
    settings = {"signals": [only], "floors": {"allowed": 1.0}, "normaliser": "none"}
    assert order(dated(classes={0: ["assistant"]}), **settings) == [1, 3, 5]
    assert order(dated(classes={0: ["factual"]}), **settings) == [0, 1, 2, 3, 4, 5]


def test_a_sort_must_be_named() -> None:
    with pytest.raises(ValidationError, match="give categories or sources"):
        Category(name="nothing")
