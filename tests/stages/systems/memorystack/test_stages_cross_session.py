from __future__ import annotations

from memlab.stages.systems.memorystack.stages import CrossSession
from tests.stages.rank.rankings import ranking
from tests.stages.rank.signals.worlds import boosted, dated, order, values


def test_it_marks_what_is_not_in_the_leading_session() -> None:
    assert values(CrossSession(), dated()) == [0, 0, 1, 1, 1, 1]
    other = dated(ranking([.6, .5, .4]).with_columns(unit=ranking([1, 1, 1])["unit"].reverse()))  # unit 2 leads
    assert values(CrossSession(), other) == [0, 1, 1]


def test_only_questions_of_its_classes_are_meant() -> None:
    tables = dated(ranking([.6, .5, .4], [.6]), classes={0: ["multi_session"]})
    assert values(CrossSession(classes=["multi_session"]), tables) == [0, 0, 1, 0]
    assert values(CrossSession(classes=["counting"]), tables) == [0, 0, 0, 0]


def test_it_changes_a_ranking() -> None:
    how = {"signals": [CrossSession()], "factors": {"cross_session": 1.35}, "normaliser": "none"}
    assert order(dated(), **how) == [0, 2, 1, 3, 4, 5]  # .4 x 1.35 = .54 is above .5
    assert boosted(dated(), **how)["score"][1] == .54
