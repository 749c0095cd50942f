from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.stages.rank.fusion import Scorer
from memlab.stages.rank.units import rank_units
from memlab.support.errors import MemlabError


def lanes(**columns: list[float | None]) -> pl.DataFrame:
    height = len(next(iter(columns.values())))
    return pl.DataFrame({"question": [0] * height, "unit": list(range(height)), **columns},
                        schema_overrides={"question": pl.Int32, "unit": pl.Int64,
                                          **dict.fromkeys(columns, pl.Float64)})


def scores(scorer: Scorer, frame: pl.DataFrame) -> list[float]:
    signals = [c for c in frame.columns if c not in ("question", "unit")]
    return scorer.fuse(frame, signals)["score"].to_list()


def test_rrf_adds_weighted_reciprocal_ranks_and_skips_what_a_lane_missed() -> None:
    frame = lanes(dense=[.9, .5, None], lexical=[1.0, 7.0, 3.0])
    got = scores(Scorer(method="rrf", weights={"dense": 2.0}), frame)
    assert got == pytest.approx([2 / 61 + 1 / 63, 2 / 62 + 1 / 61, 1 / 62])


def test_minmax_fills_a_miss_with_the_lanes_lowest() -> None:
    frame = lanes(dense=[.9, .5, .1], late=[2.0, None, 6.0])
    got = scores(Scorer(normaliser="minmax", weights={"dense": .7, "late": .3}), frame)
    assert got == pytest.approx([.7 * 1 + 0, .7 * .5 + 0, 0 + .3 * 1])


def test_a_miss_of_a_search_by_words_scores_0_or_lower() -> None:
    """Its lowest hit shares a word with the query, and the miss does not."""
    got = scores(Scorer(normaliser="minmax"), lanes(**{"lexical:turn": [2.0, None, 6.0]}))
    assert got == pytest.approx([2 / 6, 0, 1])
    assert scores(Scorer(normaliser="none"), lanes(lexical=[-1.0, None, 4.0])) == [-1, -1, 4]


def test_zscore_is_over_all_units_of_the_question_after_filling() -> None:
    got = scores(Scorer(normaliser="zscore"), lanes(a=[4.0, None, 1.0]))  # 4, 1, 1: mean 2, deviation sqrt 2
    assert got == pytest.approx([2 / math.sqrt(2), -1 / math.sqrt(2), -1 / math.sqrt(2)])


def test_max_divides_by_the_maximum_and_none_keeps_raw_scores() -> None:
    assert scores(Scorer(normaliser="max"), lanes(a=[4.0, 2.0, -2.0])) == pytest.approx([1, .5, -.5])
    assert scores(Scorer(normaliser="max"), lanes(a=[-1.0, -2.0])) == [0, 0]
    assert scores(Scorer(normaliser="none"), lanes(a=[4.0, None, 3.0])) == [4, 3, 3]


def test_reciprocal_looks_at_ranks_and_gives_a_miss_nothing() -> None:
    frame = lanes(a=[5.0, 7.0, 5.0, None, 1.0])
    assert scores(Scorer(normaliser="reciprocal"), frame) == pytest.approx([1 / 3, 1 / 2, 1 / 3, 0, 1 / 4])
    assert scores(Scorer(normaliser="reciprocal0"), frame) == pytest.approx([1 / 2, 1, 1 / 2, 0, 1 / 3])


def test_a_value_to_fill_in_counts_for_a_miss_in_place_of_the_lowest_and_the_column_keeps_its_null() -> None:
    frame = lanes(**{"dense:turn": [.9, None, .5], "lexical": [None, 8.0, 2.0]})
    gimli = Scorer(normaliser={"dense": "none", "lexical": "reciprocal"}, weights={"dense": .7, "lexical": .3},
                   fill={"dense": 0.0})
    assert scores(gimli, frame) == pytest.approx([.63, .15, .35 + .1])
    assert gimli.fuse(frame, ["dense:turn", "lexical"])["dense:turn"].to_list() == [.9, None, .5]
    assert scores(Scorer(normaliser="minmax", fill={"dense": 1.4}), lanes(**{"dense:turn": [.9, None, .4]})) == [
        pytest.approx(.5), 1, 0]
    assert scores(Scorer(normaliser="none", fill={"dense": .2}, floors={"dense": .1}), lanes(dense=[None, .05])) == [.2]


def test_each_signal_may_have_its_own_normaliser() -> None:
    frame = lanes(**{"dense:turn": [.9, .5, None], "lexical:turn": [4.0, 8.0, 2.0], "raw": [.1, .2, .3]})
    gimli = Scorer(normaliser={"dense": "none", "lexical": "reciprocal"}, weights={"dense": .7, "lexical": .3})
    assert scores(gimli, frame) == pytest.approx([.63 + .1 + .1, .35 + .15 + .2, .35 + .075 + .3])
    own = Scorer(normaliser={"dense": "none", "dense:turn": "max", "lexical": "max"}, weights={"raw": 0.0})
    assert scores(own, frame) == pytest.approx([1 + .5, 5 / 9 + 1, 5 / 9 + .25])
    with pytest.raises(ValidationError, match="minmax or max"):
        Scorer(normaliser={"dense": "zscore"}, factors={"raw": 2.0})


@pytest.mark.parametrize("normaliser", ["minmax", "zscore"])
def test_constant_lanes_say_nothing(normaliser: str) -> None:
    frame = lanes(a=[.1, .1, None], b=[3.0, 2.0, 1.0])
    alone = scores(Scorer(normaliser=normaliser), frame.select("question", "unit", "b"))
    assert scores(Scorer(normaliser=normaliser), frame) == pytest.approx(alone)
    assert scores(Scorer(normaliser=normaliser), lanes(a=[None, None])) == [0, 0]


def test_calibrated_max_takes_the_largest_logistic() -> None:
    frame = lanes(a=[1.0, 0.0], b=[0.0, 1.0])  # z-scores 1 and -1
    high, low = 1 / (1 + math.exp(-1)), 1 / (1 + math.exp(1))
    got = scores(Scorer(method="calibrated_max", weights={"b": .5}), frame)
    assert got == pytest.approx([max(high, .5 * low), max(low, .5 * high)])


def test_factors_floors_and_threshold() -> None:
    frame = lanes(a=[.8, .6, .5], preference=[None, 1.0, .5])
    boosted = Scorer(normaliser="none", factors={"preference": 1.5})
    assert scores(boosted, frame) == pytest.approx([.8, .6 * 1.5, .5 * 1.25])
    kept = Scorer(normaliser="none", threshold=.6).fuse(frame, ["a"])
    assert kept["unit"].to_list() == [0, 1]
    two = lanes(dense=[.9, None, .2], lexical=[1.0, 9.0, 5.0])
    assert Scorer(method="rrf", floors={"dense": .2}).fuse(two, ["dense", "lexical"])["unit"].to_list() == [0, 2]


def test_a_factor_moves_a_score_below_0_as_far() -> None:
    frame = lanes(a=[-.4, -.4, .5], preference=[None, 1.0, 1.0])
    assert scores(Scorer(normaliser="none", factors={"preference": 1.5}), frame) == pytest.approx([-.4, -.2, .75])
    assert scores(Scorer(normaliser="none", factors={"preference": 0.0}), frame) == pytest.approx([-.4, -.8, 0])


def test_a_search_name_weighs_all_its_lanes_and_the_full_name_wins() -> None:
    frame = lanes(**{"dense:turn": [1.0, 0.0], "dense:session": [0.0, 1.0], "lexical:turn": [0.0, 1.0]})
    got = scores(Scorer(normaliser="none", weights={"dense": 2.0, "dense:session": 5.0}), frame)
    assert got == [2, 6]


@pytest.mark.parametrize("field", [{"weights": {"lexcal:turn": 1.0}}, {"floors": {"lexcal:turn": 1.0}},
                                   {"factors": {"lexcal:turn": 1.0}, "normaliser": "minmax"},
                                   {"fill": {"lexcal:turn": 0.0}}, {"normaliser": {"lexcal:turn": "max"}}])
def test_names_that_fit_no_signal_are_refused_with_a_suggestion(field: dict[str, Any]) -> None:
    with pytest.raises(MemlabError, match="did you mean 'lexical:turn'"):
        scores(Scorer(**field), lanes(**{"lexical:turn": [1.0]}))


def test_nan_and_all_zero_weights_are_refused() -> None:
    with pytest.raises(MemlabError, match="holds NaN"):
        scores(Scorer(), lanes(a=[float("nan"), 1.0]))
    with pytest.raises(MemlabError, match="no signal has a weight"):
        scores(Scorer(weights={"a": 0.0}), lanes(a=[1.0]))


@pytest.mark.parametrize("how", [("weighted", "zscore"), ("weighted", "minmax"), ("weighted", "max"),
                                 ("weighted", "reciprocal"), ("rrf", "none"), ("calibrated_max", "zscore")])
@pytest.mark.parametrize("units", [1, 2, 63, 1000, 4097])
def test_a_question_alone_has_the_scores_that_it_has_among_others(how: tuple[Any, Any], units: int) -> None:
    draw = np.random.default_rng(units)
    rows = [draw.normal(size=2 * units) * 10.0 ** draw.integers(-3, 4) for _ in range(3)]
    rows[1][draw.random(2 * units) < .3] = np.nan
    both = pl.DataFrame({"question": np.arange(2 * units) % 2, **dict(zip("abc", rows))}, nan_to_null=True)
    alone = both.filter(pl.col("question") == 1)
    scorer = Scorer(method=how[0], normaliser=how[1])
    together = scorer.fuse(both, ["a", "b", "c"]).filter(pl.col("question") == 1)["score"]
    np.testing.assert_allclose(scorer.fuse(alone, ["a", "b", "c"])["score"], together, rtol=1e-12, atol=1e-12)


values = st.integers(-50, 50).map(lambda i: i / 8)
columns = st.integers(2, 12).flatmap(lambda n: st.tuples(*[st.lists(values | st.none(), min_size=n, max_size=n)] * 3))


@given(columns, st.sampled_from([.25, 3.0, 64.0]), st.sampled_from([-8.0, 0.0, 5.0]),
       st.sampled_from([("weighted", "zscore"), ("weighted", "minmax"), ("rrf", "none"), ("weighted", "reciprocal"),
                        ("calibrated_max", "zscore")]))
def test_order_does_not_depend_on_a_lanes_scale(parts, scale, shift, how) -> None:
    frame = lanes(a=parts[0], b=parts[1], c=parts[2])
    method, normaliser = how
    scorer = Scorer(method=method, normaliser=normaliser, weights={"a": 1.5})
    moved = frame.with_columns(pl.col("b") * scale + shift)
    assert scores(scorer, moved) == pytest.approx(scores(scorer, frame), abs=1e-9)


def test_near_ties_go_to_the_smaller_unit() -> None:
    frame = lanes(a=[.3, .3 + 1e-9, .2])
    assert rank_units(Scorer(normaliser="none").fuse(frame, ["a"]))["unit"].to_list() == [0, 1, 2]
