from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.evaluate.compare import ArmResult, recommend
from memlab.evaluate.contrast import Contrast
from memlab.evaluate.verdict import Recommendation

METRIC = "selected/turn/recall_all"


def arm(values: Sequence[float], tokens: float = 100.0, *, groups: Sequence[int] | None = None,
        **more: bool) -> ArmResult:
    n = len(values)
    return ArmResult(pl.DataFrame({
        "question": range(n), "group": list(groups or range(n)), "category": ["x"] * n, "label_error": [None] * n,
        "scored": [True] * n, METRIC: np.asarray(values, float), "context/tokens": [tokens] * n},
        schema_overrides={"label_error": pl.String}), **more)


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


def test_the_cheapest_arm_that_is_as_good_is_named_and_one_that_may_lose_two_points_is_not() -> None:
    best, worse = share(.80), share(.80)
    worse[0] = 0.0  # one question of 200: half a point, whose interval ends above two points
    arms = {"best": arm(best, 1_000), "half": arm(worse, 500), "cheap": arm(worse, 300), "poor": arm(share(.7), 100)}
    found = of(arms)
    assert found["cheaper"] is not None
    assert found["cheaper"]["arm"] == "cheap"
    without = of({name: arms[name] for name in ("best", "poor")})
    assert without["cheaper"] is None
    assert without["cheap"] == 1
    assert of({"best": arm(best, 1_000), "dear": arm(share(.7), 501)})["cheap"] == 0


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


def test_more_questions_are_planned_from_the_spread_and_fewer_are_needed_where_arms_differ_less() -> None:
    rng = np.random.default_rng(3)
    first = rng.integers(0, 2, 40).astype(float)
    near, far = first.copy(), rng.integers(0, 2, 40).astype(float)
    near[:2] = 1 - near[:2]
    needed = [of({"a": arm(first.tolist()), "b": arm(other.tolist())})["tied"][0]["needed"] for other in (near, far)]
    assert needed[0] is not None
    assert needed[1] is not None
    assert 40 < needed[0] < needed[1]
    alike = of({"a": arm([1.0, 0.0, 1.0]), "b": arm([1.0, 0.0, 1.0])})["tied"][0]["needed"]
    assert alike is not None  # no spread was seen: that of plans is assumed
    assert alike > 900


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
