from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from memlab.learn.ranker.signals import signal_features, zscores

TURNS = [(0, 0), (0, 1), (1, 0), (0, 2), (1, 1), (0, 4)]
"""Session and turn of each unit, in the order of the fused score."""

LANE = [4.0, None, 7.0, 7.0, 1.0, 2.0]


def features(questions: int = 1) -> pl.DataFrame:
    """Features of the first five of six units for each of these questions, all alike."""
    one = {"unit": range(6), "score": [9.0, 8.0, 6.0, 5.0, 2.0, 1.0], "rank": range(1, 7), "corpus": [0] * 6,
           "session": [s for s, _ in TURNS], "turn": [t for _, t in TURNS], "lane": LANE}
    placed = pl.concat(pl.DataFrame(one).with_columns(question=pl.lit(q)) for q in range(questions))
    return signal_features(placed, 5)


def z(values: list[float]) -> list[float]:
    return ((np.array(values) - np.mean(values[:5])) / np.std(values[:5])).tolist()


FUSED = z([9.0, 8.0, 6.0, 5.0, 2.0, 1.0])


def test_a_session_has_its_best_its_second_and_the_sum_of_its_turns_above_the_mean() -> None:
    made = features()
    assert made["session best z linear"].to_list() == pytest.approx([FUSED[0], FUSED[0], FUSED[2], FUSED[0], FUSED[2]])
    assert made["session second z linear"].to_list() == pytest.approx([FUSED[i] for i in (1, 1, 4, 1, 4)])
    assert made["session sum z linear"][0] == pytest.approx(FUSED[0] + FUSED[1])  # the third of them is below 0
    assert made["session best z linear minus own"].to_list() == pytest.approx(
        [0, FUSED[0] - FUSED[1], 0, FUSED[0] - FUSED[3], FUSED[2] - FUSED[4]])
    assert made["session turns ranked"].to_list() == pytest.approx([math.log(n + 1) for n in (3, 3, 2, 3, 2)])
    assert made["session rank"].to_list() == pytest.approx([math.log(n + 1) for n in (1, 1, 2, 1, 2)])


def test_equal_values_have_one_rank_and_a_turn_without_a_hit_is_as_low_as_the_lowest() -> None:
    assert features()["rank lane"].to_list() == pytest.approx([math.log(n + 1) for n in (3, 4, 1, 1, 4)])
    assert features()["below lane"].to_list() == pytest.approx([z([4, 1, 7, 7, 1])[2] - v for v in z([4, 1, 7, 7, 1])])


def test_neighbours_are_counted_in_turns_and_end_with_the_session() -> None:
    made = features()
    assert made["z linear +1"].to_list() == [pytest.approx(FUSED[1]), pytest.approx(FUSED[3]),
                                             pytest.approx(FUSED[4]), None, None]
    assert made["z linear +2"].to_list() == [pytest.approx(FUSED[3]), None, None, pytest.approx(FUSED[5]), None]
    assert made["z linear -1"].to_list() == [None, pytest.approx(FUSED[0]), None, pytest.approx(FUSED[1]),
                                             pytest.approx(FUSED[2])]


def test_questions_do_not_reach_each_other() -> None:
    assert zscores(np.ones(3), np.zeros(3, np.int64)).tolist() == [0, 0, 0]
    assert features(3).equals(pl.concat([features()] * 3))
