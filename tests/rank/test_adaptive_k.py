from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memlab.rank.adaptive_k import LARGEST_BUFFER, AdaptiveK, largest_gap, second_difference
from memlab.store import Store
from memlab.tables import Tables
from tests.rank.rankings import ranking, shown

TWENTY = [30.0, 29, 28, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, -50]


def ranks(rule: AdaptiveK, *lists: list[float]) -> list[list[int]]:
    return shown(rule.run(Tables(ranking=ranking(*lists)), Store())["ranking"])


def test_the_largest_gap_is_cut_at_and_the_last_tenth_is_barred() -> None:
    # the gap before -50 is the largest; it is the last of 19, and int(19 x .1) = 1 gap is barred
    assert largest_gap(np.array(TWENTY), tail=.1) == 3
    assert largest_gap(np.array(TWENTY), tail=0) == 19
    assert ranks(AdaptiveK(buffer=0), TWENTY) == [[1, 2, 3]]
    assert ranks(AdaptiveK(), TWENTY) == [[*range(1, 9)]]


def test_the_moving_average_finds_the_steepest_stretch_where_a_single_gap_misleads() -> None:
    scores = [10.0, 7.0, 6.9, 6.8, 5.0, 3.5, 2.0, 1.9, 1.8, 1.7]  # one gap of 3, then three of 1.8, 1.5 and 1.5
    assert largest_gap(np.array(scores), tail=.1) == 1
    drops = [(sum(scores[i:i + 3]) - sum(scores[i + 1:i + 4])) / 3 for i in range(7)]
    assert largest_gap(np.array(scores), tail=.1, window=3) == drops.index(max(drops)) + 1 == 4
    assert ranks(AdaptiveK(strategy="moving_average", buffer=1), scores) == [[1, 2, 3, 4, 5]]


def test_second_differences_cut_behind_the_first_gap_that_grew() -> None:
    # gaps .5, 3.5, .5, .3: they grow to 3.5 and shrink at once; the unit behind that gap is the third
    assert second_difference(np.array([9.0, 8.5, 5.0, 4.5, 4.2]), tail=.1) == 3
    # gaps 4, 3, 2, 1 only shrink: the largest gap is taken
    assert second_difference(np.array([10.0, 6.0, 3.0, 1.0, 0.0]), tail=.1) == 1


def test_ranks_beyond_the_depth_are_neither_looked_at_nor_shown() -> None:
    assert ranks(AdaptiveK(depth=3, buffer=0, tail=0), [9.0, 8.0, 6.0, -90.0]) == [[1, 2]]
    assert ranks(AdaptiveK(depth=3), [9.0, 8.0, 6.0, -90.0]) == [[1, 2, 3]]


def test_the_curve_goes_over_the_buffer_and_each_point_shows_one_unit_more() -> None:
    sizes = [len(ranks(rule, TWENTY)[0]) for rule in AdaptiveK(depth=19).variations()]
    assert sizes[0] == 3
    assert sizes == [min(3 + buffer, 19) for buffer in range(LARGEST_BUFFER + 1)]


lists = st.lists(st.integers(-40, 40).map(lambda i: i / 4), min_size=1, max_size=30).map(
    lambda scores: sorted(scores, reverse=True))


@given(lists, st.sampled_from(["largest_gap", "moving_average", "second_difference"]), st.integers(0, 4))
def test_the_head_of_the_ranking_is_shown_whatever_the_scale(scores, strategy, buffer) -> None:
    rule = AdaptiveK(strategy=strategy, buffer=buffer)
    head = ranks(rule, scores)[0]
    assert head == [*range(1, len(head) + 1)]
    assert len(head) >= min(1 + buffer, len(scores))
    assert head == ranks(rule, [2 * x - 7 for x in scores])[0]


@given(lists)
def test_no_gap_outside_the_tail_is_larger_than_the_one_cut_at(scores) -> None:
    place = largest_gap(np.array(scores), tail=.1)
    gaps = [a - b for a, b in pairwise(scores)]
    allowed = gaps[:len(gaps) - int((len(scores) - 1) * .1)]
    assert not gaps or gaps[place - 1] == max(allowed) and gaps[place - 1] not in gaps[:place - 1]
