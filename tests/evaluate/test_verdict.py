from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluate.compare import ArmResult, recommend
from memlab.evaluate.contrast import KEPT_RANKS, Contrast
from memlab.evaluate.verdict import Recommendation

METRIC = "selected/turn/recall_all"


def arm(values: Sequence[float], tokens: float = 100.0, *, groups: Sequence[int] | None = None,
        shown: float | None = None, **more: bool) -> ArmResult:
    n = len(values)
    ranking = None if shown is None else pl.DataFrame({
        "question": [q for q in range(n) for _ in range(4)], "selected": [True] * round(4 * n * shown)
        + [False] * (4 * n - round(4 * n * shown))})
    return ArmResult(pl.DataFrame({
        "question": range(n), "group": list(groups or range(n)), "category": ["x"] * n, "label_error": [None] * n,
        "scored": [True] * n, METRIC: np.asarray(values, float), "context/tokens": [tokens] * n},
        schema_overrides={"label_error": pl.String}), ranking, **more)


def share(p: float, n: int = 200) -> list[float]:
    """The first questions are found: a better arm finds all that a worse one finds."""
    return [float(i < round(p * n)) for i in range(n)]


def of(arms: Mapping[str, ArmResult], contrasts: Sequence[Contrast] = ()) -> Recommendation:
    found = recommend(arms, contrasts)
    assert found is not None
    return found


def places(found: Recommendation) -> list[tuple[str, int]]:
    return [(place["arm"], place["tier"]) for place in found["ranking"]]


def test_arms_that_cannot_be_told_apart_share_a_tier() -> None:
    found = of({"c": arm(share(.50)), "a": arm(share(.80), 900), "b": arm(share(.795), 800), "d": arm(share(.49))})
    assert places(found) == [("a", 1), ("b", 1), ("c", 2), ("d", 2)]
    assert [rival["arm"] for rival in found["tied"]] == ["b"]
    assert found["behind"] is not None
    assert found["behind"]["arm"] == "c"
    assert found["behind"]["difference"] == pytest.approx(-.30)
    assert found["words"][0] == "Use a: all evidence turns are shown for 80.0 % of the questions at 900 tokens each."
    assert found["words"][1].startswith("How sure: it is not shown to be ahead of b (+0.5 points, 95 % interval")
    assert found["words"][2].startswith("It is shown to be ahead of the other 2; the nearest is c (+30.0 points, 95 %")
    assert "p < .001 after Holm over 3" in found["words"][2]


def test_the_cheapest_arm_that_is_as_good_is_named_and_one_that_may_lose_two_points_is_not() -> None:
    best, worse = share(.80), share(.80)
    worse[0] = 0.0  # one question of 200: half a point, whose interval ends above two points
    arms = {"best": arm(best, 1_000), "half": arm(worse, 500), "cheap": arm(worse, 300), "poor": arm(share(.7), 100)}
    found = of(arms)
    assert found["cheaper"] is not None
    assert found["cheaper"]["arm"] == "cheap"
    assert "As good at half the price: cheap at 300 tokens each, −0.5 points" in found["words"][-2]
    assert "excludes a loss of 2 points" in found["words"][-2]
    assert found["words"][-1].startswith("Costs differ: the arms show 100 to 1,000 tokens")
    without = of({name: arms[name] for name in ("best", "poor")})
    assert without["cheaper"] is None
    assert without["words"][-2:] == [
        "As good at half the price: no arm.", "Costs differ: the arms show 100 to 1,000 tokens, and more tokens find "
        "more. rank/select=budget compares them at equal tokens."]
    assert without["words"][0].startswith("Use best")
    alone = of({"best": arm(best, 1_000), "dear": arm(share(.7), 501)})
    assert not any("half the price" in sentence for sentence in alone["words"])


def test_what_looks_at_gold_is_no_candidate_and_twins_are_none() -> None:
    arms = {"oracle": arm(share(1.0), oracle=True), "seen": arm(share(1.0), tainted=True), "a.twin": arm(share(.9)),
            "a": arm(share(.8)), "b": arm(share(.4))}
    assert places(of(arms)) == [("a", 1), ("b", 2)]
    assert recommend({name: arms[name] for name in ("oracle", "seen", "a.twin", "a")}, []) is None


def test_a_budget_that_holds_everything_compares_nothing() -> None:
    found = of({"a": arm(share(.8), shown=1.0), "b": arm(share(.4), shown=.95)})
    assert found["words"][0].startswith("Nothing can be compared: 95 % of the questions are shown every candidate")
    assert of({"a": arm(share(.8), shown=1.0), "b": arm(share(.4), shown=.5)})["words"][0].startswith("Use a")
    many = pl.DataFrame({"question": [0] * KEPT_RANKS, "selected": [True] * KEPT_RANKS})  # further ranks are not kept
    full = ArmResult(arm(share(.8)).questions, many)
    assert of({"a": full, "b": ArmResult(arm(share(.4)).questions, many)})["whole"] is None


def test_one_group_tests_nothing_so_all_share_a_tier() -> None:
    groups = [7] * 200
    found = of({"a": arm(share(.8), groups=groups), "b": arm(share(.1), groups=groups)})
    assert places(found) == [("a", 1), ("b", 1)]
    assert found["behind"] is None
    assert found["words"] == [
        "No arm can be preferred: a has the highest value, all evidence turns are shown for 80.0 % of the questions at "
        "100 tokens each, on 200 questions in 1 independent group.",
        "It is ahead of b (+70.0 points), which is not shown to be worse."]


def test_no_arm_is_preferred_where_none_is_shown_to_be_behind() -> None:
    few = {f"arm{i}": arm([1.0, 1.0, float(i == 0)], 100 + i) for i in range(8)}
    first, second = of(few)["words"]
    assert first == ("No arm can be preferred: arm0 has the highest value, all evidence turns are shown for 100.0 % of "
                     "the questions at 100 tokens each, on 3 questions.")
    assert second.count("points, 95 % interval") == 5
    assert second.endswith("and 2 more, none of which is shown to be worse.")
    level = of({"a": arm([1.0, 0.0, 1.0], 90), "b": arm([1.0, 0.0, 1.0], 100)})["words"]
    assert level == ["No arm can be preferred: all 2 are level, all evidence turns are shown for 66.7 % of the "
                     "questions, on 3 questions."]
    level = of({"a": arm([1.0], 90), "b": arm([1.0], 100)})["words"]
    assert level[0].endswith("on 1 question.")


def test_an_arm_as_good_at_half_the_price_is_named_without_a_winner_too() -> None:
    best, other = share(.80), share(.80)
    other[0] = 0.0
    words = of({"best": arm(best, 1_000), "half": arm(other, 400)})["words"]
    assert words[0].startswith("No arm can be preferred: best has the highest value")
    assert words[-2].startswith("As good at half the price: half at 400 tokens each, −0.5 points")


def test_a_declared_metric_comes_first_and_curves_have_no_tiers() -> None:
    arms = {"a": arm(share(.8), 50), "b": arm(share(.4))}
    assert recommend(arms, [Contrast("a", "b", f"curve/{METRIC}")]) is None
    assert of(arms, [Contrast("a", "b", "context/tokens", "less")])["metric"] == METRIC  # a cost ranks nothing
    frames = {name: ArmResult(one.questions.with_columns(pl.lit(1.0).alias("session/mrr")))
              for name, one in arms.items()}
    assert of(frames, [Contrast("a", "b", "session/mrr")])["metric"] == "session/mrr"
    assert recommend({name: ArmResult(one.questions.drop(METRIC)) for name, one in arms.items()}, []) is None


@given(st.lists(st.integers(0, 40), min_size=2, max_size=5), st.randoms())
def test_the_order_of_arms_changes_nothing_and_tiers_follow_the_values(found: list[int], random: object) -> None:
    arms = {f"arm{i}": arm(share(n / 40, 40), 100.0 + i) for i, n in enumerate(found)}
    first = of(arms)
    shuffled = list(arms.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert of(dict(shuffled)) == first
    values = [place["value"] for place in first["ranking"]]
    tiers = [place["tier"] for place in first["ranking"]]
    assert sorted(name for name, _ in places(first)) == sorted(arms)
    assert tiers == sorted(tiers)
    leaders = [value for i, value in enumerate(values) if i == 0 or tiers[i] != tiers[i - 1]]
    assert leaders == sorted(leaders, reverse=True)


def test_two_arms_need_no_correction_and_no_nearest() -> None:
    found = of({"a": arm(share(.8), 900), "b": arm(share(.5), 900)})
    assert found["words"][1].startswith("How sure: it is shown to be ahead of b (+30.0 points, 95 % interval +23.6 to")
    assert found["words"][1].endswith(", p < .001).")
