from __future__ import annotations

from memlab.rank.signals import AccessCount, Feedback
from tests.rank.signals.worlds import dated, order, values


def test_an_experiment_has_no_votes_and_nothing_was_returned_before() -> None:
    assert values(Feedback(), dated()) == [.5] * 6
    assert values(AccessCount(), dated()) == [0] * 6
    weights = {"first": .9, "feedback": .1, "accesses": .05}
    assert order(dated(), signals=[Feedback(), AccessCount()], normaliser="minmax", weights=weights) == dated()[
        "ranking"]["unit"].to_list()
