from __future__ import annotations

import pytest

from memlab.evaluate.contrast import UNKNOWN
from memlab.evaluate.verdict import winner

METRIC = "curve/selected/turn/recall_all"


def row(arm: str, comparator: str, difference: float | None, verdict: str, **more) -> dict:
    known = {} if difference is None else {"low": difference - .01, "high": difference + .01, "p": .002,
                                           "p_adjusted": .012}
    return {**UNKNOWN, "arm": arm, "comparator": comparator, "metric": METRIC, "direction": "greater", "n": 90,
            "difference": difference, "verdict": verdict, **known, **more}


def test_a_rule_wins_that_is_shown_ahead_of_all_it_is_compared_with() -> None:
    rows = [row("marginal", "constant", .035, "shown"), row("marginal", "budget", .031, "shown"),
            row("gap", "constant", .001, "open")]
    found = winner(rows)
    assert found is not None
    assert (found.arm, found.wins, found.also) == ("marginal", True, ())
    assert found.nearest["comparator"] == "budget"


def test_a_rule_that_is_beaten_by_a_winner_comes_second_whatever_its_difference() -> None:
    found = winner([row("a", "constant", .02, "shown"), row("a", "b", .01, "shown"),
                    row("b", "constant", .03, "shown")])
    assert found is not None
    assert (found.arm, found.wins, found.also) == ("a", True, ("b",))


def test_a_second_winner_that_is_not_told_apart_is_no_obstacle() -> None:
    rows = [row("a", "constant", .09, "shown"), row("a", "b", .004, "open"), row("b", "constant", .08, "shown")]
    found = winner(rows)
    assert found is not None
    assert (found.arm, found.wins, found.also) == ("a", True, ("b",))
    assert found.nearest["comparator"] == "constant"  # that with b is not shown
    other = winner([*rows[:1], row("a", "b", -.03, "opposite"), rows[2]])
    assert other is not None
    assert other.arm == "b"


@pytest.mark.parametrize("second", ["open", "likely", "opposite", "no comparator"])
def test_one_contrast_that_is_not_shown_is_no_win(second) -> None:
    difference = None if second == "no comparator" else .01
    found = winner([row("a", "constant", .02, "shown"), row("a", "budget", difference, second)])
    assert found is not None
    assert (found.arm, found.wins) == ("a", False)


def test_the_nearest_is_the_likeliest() -> None:
    found = winner([row("a", "constant", .04, "open"), row("b", "constant_by_class", .017, "likely")])
    assert found is not None
    assert (found.arm, found.wins) == ("b", False)


def test_without_curves_or_differences_no_rule_is_named() -> None:
    assert winner([row("a", "constant", None, "undefined")]) is None
    assert winner([row("a", "constant", .01, "open", metric="selected/turn/recall_all")]) is None
    assert winner([]) is None
