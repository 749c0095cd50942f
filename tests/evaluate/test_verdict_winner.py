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


FIRST = row("a", "constant", .09, "shown")


@pytest.mark.parametrize(("rows", "arm", "wins", "also", "nearest"), [
    ([row("a", "constant", .035, "shown"), row("a", "budget", .031, "shown"), row("gap", "constant", .001, "open")],
     "a", True, (), "budget"),  # shown ahead of all that it is compared with
    ([row("a", "constant", .02, "shown"), row("a", "b", .01, "shown"), row("b", "constant", .03, "shown")],
     "a", True, ("b",), "b"),  # a rule that is beaten by a winner comes second whatever its difference
    ([FIRST, row("a", "b", .004, "open"), row("b", "constant", .08, "shown")],
     "a", True, ("b",), "constant"),  # a second winner that is not told apart is no obstacle
    ([FIRST, row("a", "b", -.03, "opposite"), row("b", "constant", .08, "shown")], "b", True, (), "constant"),
    *(([FIRST, row("a", "budget", .01, other)], "a", False, (), "budget") for other in ("open", "likely", "opposite")),
    ([FIRST, row("a", "budget", None, "no comparator")], "a", False, (), "constant"),
    ([row("a", "constant", .04, "open"), row("b", "constant_by_class", .017, "likely")],
     "b", False, (), "constant_by_class")])  # the nearest is the likeliest
def test_a_rule_wins_where_all_its_contrasts_are_shown(
        rows: list[dict], arm: str, wins: bool, also: tuple[str, ...], nearest: str) -> None:
    found = winner(rows)
    assert found is not None
    assert (found.arm, found.wins, found.also, found.nearest["comparator"]) == (arm, wins, also, nearest)


def test_without_curves_or_differences_no_rule_is_named() -> None:
    assert winner([row("a", "constant", None, "undefined")]) is None
    assert winner([row("a", "constant", .01, "open", metric="selected/turn/recall_all")]) is None
    assert winner([]) is None
