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
    assert winner(rows) == (
        "marginal wins: at equal tokens it finds complete evidence in 3.5 points more questions than constant K "
        "(95 % interval +2.5 to +4.5, p = .012 after Holm), and in 3.1 points more questions than budget "
        "(95 % interval +2.1 to +4.1, p = .012 after Holm).")


def test_a_rule_that_is_beaten_by_a_winner_comes_second_whatever_its_difference() -> None:
    rows = [row("a", "constant", .02, "shown"), row("a", "b", .01, "shown"), row("b", "constant", .03, "shown")]
    assert winner(rows).startswith("a wins: at equal tokens it finds complete evidence in 2.0 points more")
    assert winner(rows).endswith("Also shown to beat what it is compared with: b.")


def test_a_second_winner_that_is_not_told_apart_is_no_obstacle() -> None:
    rows = [row("a", "constant", .09, "shown"), row("a", "b", .004, "open"), row("b", "constant", .08, "shown")]
    assert winner(rows).startswith("a wins: at equal tokens it finds complete evidence in 9.0 points more")
    assert "0.4 points more questions than b (95 % interval −0.6 to +1.4, p = .012 after Holm, not shown)" in winner(
        rows)
    assert winner(rows).endswith("Also shown to beat what it is compared with: b.")
    assert winner([*rows[:1], row("a", "b", -.03, "opposite"), rows[2]]).startswith("b wins")


@pytest.mark.parametrize("second", ["open", "likely", "opposite", "no comparator"])
def test_one_contrast_that_is_not_shown_is_no_win(second) -> None:
    difference = None if second == "no comparator" else .01
    rows = [row("a", "constant", .02, "shown"), row("a", "budget", difference, second)]
    assert winner(rows).startswith("No rule is shown to beat what it is compared with at equal tokens.")
    assert "The nearest is a, which" in winner(rows)


def test_the_nearest_is_the_likeliest_and_a_loss_is_called_one() -> None:
    rows = [row("a", "constant", .04, "open"), row("b", "constant_by_class", .017, "likely")]
    assert "The nearest is b, which finds complete evidence in 1.7 points more questions than the best constant K of " \
           "each class (95 %" in winner(rows)
    assert "in 1.0 points fewer questions than" in winner([row("a", "constant", -.01, "open")])


def test_without_groups_nothing_is_tested_and_without_curves_nothing_is_said() -> None:
    one = row("a", "constant", .01, "open", low=None, high=None, p=None, p_adjusted=None)
    assert winner([one]).endswith("constant K (nothing can be tested, not shown).")
    assert winner([row("a", "constant", None, "undefined")]) == "No rule could be compared over its whole curve."
    assert winner([{**one, "metric": "selected/turn/recall_all"}]) == ""
    assert winner([]) == ""


def test_a_curve_of_the_answers_words_is_told_in_words() -> None:
    words = {"metric": "curve/shown/answer_words"}
    rows = [row("marginal", "constant", .083, "shown", **words), row("half", "constant", -.011, "open", **words)]
    assert winner(rows) == ("marginal wins: at equal tokens it shows 8.3 points more of the answers' words than "
                            "constant K (95 % interval +7.3 to +9.3, p = .012 after Holm).")
    assert "half, which shows 1.1 points less of the answers' words than constant K" in winner(rows[1:])
