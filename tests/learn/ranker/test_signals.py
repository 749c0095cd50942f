from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.learn.ranker.signals import Groups, dense_numbers, signal_features, zscores

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


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 3.0, 8.0]), st.booleans()), min_size=1))
def test_a_score_is_standardised_by_the_rows_of_its_question_that_count(rows: list[tuple[int, float, bool]]) -> None:
    question, values, inside = map(np.array, zip(*rows))
    for counted in (inside, None):
        made = zscores(values, question, counted)
        for i, (of, value, _) in enumerate(rows):
            own = [v for q, v, used in rows if q == of and (used or counted is None)]
            expected = (value - np.mean(own)) / np.std(own) if own and np.std(own) > 1e-9 else 0.0
            assert made[i] == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_rows_of_a_group_are_put_together_in_their_order(rows: list[tuple[int, int]]) -> None:
    of = dense_numbers(pl.Series([group for group, _ in rows]))
    groups, values = Groups(of), np.array([float(value) for _, value in rows])
    assert groups.descending(values).tolist() == sorted(range(len(rows)), key=lambda row: (of[row], -values[row], row))
    assert groups.start.tolist() == [int((of < number).sum()) for number in range(of.max() + 1)]


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
    assert features(3).equals(pl.concat([features()] * 3))
