from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest

from memlab.evaluate.compare import ArmResult, compare
from memlab.evaluate.contrast import UNKNOWN, Contrast
from memlab.evaluate.statistics import interval_error, t_power
from memlab.evaluate.verdict import Recommendation, winner

METRIC = "within_1000/turn/recall_all"


def arm(values: Sequence[float], tokens: float = 100.0, *, groups: Sequence[int] | None = None,
        own: Sequence[float] = (), **more: bool) -> ArmResult:
    n = len(values)
    return ArmResult(pl.DataFrame({
        "question": range(n), "corpus": [0] * n, "group": list(groups or range(n)), "category": ["x"] * n,
        "label_error": [None] * n,
        "scored": [True] * n, METRIC: np.asarray(values, float), "context/tokens": [tokens] * n,
        "selected/turn/recall_all": np.asarray(own or values, float)},
        schema_overrides={"label_error": pl.String}), **more)


def share(p: float, n: int = 200) -> list[float]:
    """The first questions are found: a better arm finds all that a worse one finds."""
    return [float(i < round(p * n)) for i in range(n)]


def of(arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast] = ()) -> Recommendation:
    found = recommend(arms, contrasts)
    assert found is not None
    return found


def recommend(arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast] = ()) -> Recommendation | None:
    return compare("e", "d", arms, contrasts)["verdict"]


def places(found: Recommendation) -> list[tuple[str, int]]:
    return [(place["arm"], place["tier"]) for place in found["ranking"]]


def test_arms_that_cannot_be_told_apart_share_a_tier() -> None:
    found = of({"c": arm(share(.50)), "a": arm(share(.80), 900), "b": arm(share(.795), 800), "d": arm(share(.49))})
    assert places(found) == [("a", 1), ("b", 1), ("c", 2), ("d", 2)]
    assert [rival["arm"] for rival in found["tied"]] == ["b"]
    assert found["behind"] is not None
    assert found["behind"]["arm"] == "c"
    assert found["behind"]["difference"] == pytest.approx(-.30)


def test_what_looks_at_gold_is_no_candidate_and_twins_are_none() -> None:
    arms = {"oracle": arm(share(1.0), oracle=True), "seen": arm(share(1.0), tainted=True), "a.twin": arm(share(.9)),
            "a": arm(share(.8)), "b": arm(share(.4))}
    assert places(of(arms)) == [("a", 1), ("b", 2)]
    assert recommend({name: arms[name] for name in ("oracle", "seen", "a.twin", "a")}, []) is None


def test_one_group_tests_nothing_so_all_share_a_tier() -> None:
    groups = [7] * 200
    found = of({"a": arm(share(.8), groups=groups), "b": arm(share(.1), groups=groups)})
    assert places(found) == [("a", 1), ("b", 1)]
    assert found["behind"] is None
    assert [rival["needed"] for rival in found["tied"]] == [None]  # one group gives no spread to plan with


def test_more_questions_are_those_that_show_the_difference_that_was_seen() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, 40).astype(float)
    near, far = first.copy(), first.copy()
    near[[np.flatnonzero(first)[0]]] = 0.0
    far[np.flatnonzero(first)[:2]] = 0.0
    needed = [of({"a": arm(first.tolist()), "b": arm(other.tolist())})["tied"][0] for other in (near, far)]
    assert all(rival["difference"] and rival["needed"] for rival in needed)
    for rival in needed:  # the same spread in n + more questions gives the difference a power of 80 %
        assert rival["low"] is not None
        assert rival["high"] is not None
        error = interval_error(rival["low"], rival["high"], 39) / np.sqrt(1 + (rival["needed"] or 0) / 40)
        assert t_power(abs(rival["difference"]), error, 39 + (rival["needed"] or 0), .05) == pytest.approx(.8, abs=.01)
    alike = of({"a": arm([1.0, 0.0, 1.0]), "b": arm([1.0, 0.0, 1.0])})["tied"][0]
    assert alike["needed"] is None  # no difference was seen


def test_rankings_that_differ_are_compared_at_equal_tokens_whatever_arms_show_by_their_own_choice() -> None:
    """A sweep of systems, of which one shows twelve times the tokens: more is found by showing more."""
    arms = {"best": arm(share(.80), 1_326, own=share(.60)), "opsem": arm(share(.50), 16_419, own=share(.95))}
    assert places(of(arms)) == [("best", 1), ("opsem", 2)]
    for declared in ("selected/turn/recall_all", "answer/f1", "session/mrr", "context/tokens"):
        frames = {name: ArmResult(one.questions.with_columns(pl.col("selected/turn/recall_all").alias(m)
                                                             for m in ("answer/f1", "session/mrr")))
                  for name, one in arms.items()}
        found = of(frames, [Contrast("best", "opsem", declared)])
        assert (found["metric"], found["ranking"][0]["arm"]) == (METRIC, "best")


def test_another_metric_decides_where_arms_cost_the_same() -> None:
    arms = {"a": arm(share(.8), 950), "b": arm(share(.4), 1_000)}
    ones = dict.fromkeys(("session/mrr", "stale/shown", "answer/f1"), pl.lit(1.0))
    more = {name: ArmResult(one.questions.with_columns(**ones)) for name, one in arms.items()}
    assert of(more)["metric"] == "answer/f1"
    assert of(more, [Contrast("a", "b", "session/mrr")])["metric"] == "session/mrr"
    low = [Contrast("a", "b", metric, "less") for metric in ("context/tokens", "stale/shown")]  # they rank nothing
    assert [of(one, low)["metric"] for one in (arms, more)] == [METRIC, "answer/f1"]
    assert recommend(arms, [Contrast("a", "b", "curve/selected/turn/recall_all")]) is None
    unmeasured = [ArmResult(one.questions.drop(METRIC, "selected/turn/recall_all")) for one in arms.values()]
    assert recommend(dict(zip("ab", unmeasured))) is None


def test_the_declared_budget_decides_and_the_others_stand_beside_it() -> None:
    def at(*shares: float) -> ArmResult:
        one = arm(share(shares[1]))
        return ArmResult(one.questions.with_columns(*(pl.Series(f"within_{tokens}/turn/recall_all", share(value))
                                                      for tokens, value in zip((300, 500, 1000, 3000), shares))))

    arms = {"best": at(.6, .7, .8, .9), "sessions": at(0., .3, .9, 1.)}
    found = compare("e", "d", arms, [], budget=500)["verdict"]
    assert found is not None
    assert (found["metric"], found["ranking"][0]["arm"]) == ("within_500/turn/recall_all", "best")
    assert {tokens: one["ranking"][0]["arm"] for tokens, one in found["elsewhere"].items()} == {
        "300": "best", "1000": "sessions", "3000": "sessions"}


@pytest.mark.parametrize(("contrasts", "taken"), [
    ([], "best"), ([Contrast("oltramem", "plain", METRIC)], "oltramem"),
    ([Contrast("plain", "oltramem", METRIC)], "best")])
def test_of_level_arms_the_declared_or_the_default_system_is_taken(contrasts: list[Contrast], taken: str) -> None:
    level = share(.8, 2_000)
    level[0] = 0.0
    arms = {"oltramem": arm(share(.8, 2_000)), "best": arm(level), "plain": arm(share(.5, 2_000))}
    found = of(arms, contrasts)
    assert places(found)[0] == (taken, 1)
    assert [tier for _, tier in places(found)] == [1, 1, 2]
    assert found["behind"] is not None


def test_the_order_of_arms_changes_nothing() -> None:
    arms = {name: arm(share(p)) for name, p in {"a": .8, "b": .8, "c": .5, "d": .795}.items()}
    assert of(dict(reversed(arms.items()))) == of(arms)


def row(arm: str, comparator: str, difference: float | None, verdict: str, **more) -> dict:
    known = {} if difference is None else {"low": difference - .01, "high": difference + .01, "p": .002,
                                           "p_adjusted": .012}
    return {**UNKNOWN, "arm": arm, "comparator": comparator, "metric": "curve/selected/turn/recall_all",
            "direction": "greater", "n": 90, "difference": difference, "verdict": verdict, **known, **more}


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
