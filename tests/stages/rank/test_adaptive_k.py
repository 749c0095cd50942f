"""Adaptive K: cuts in the scores, the nucleus, and token-matched twins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.data.numbering import draws
from memlab.pipeline.tables import Tables, empty, frame, text_hash
from memlab.stages.rank import adaptive_k
from memlab.stages.rank.adaptive_k import (
    LARGEST_BUFFER,
    AdaptiveK,
    TokenMatchedK,
    TopP,
    largest_gap,
    mean_tokens,
    second_difference,
    with_share,
)
from memlab.stages.rank.select import Fixed, Gap
from memlab.store import Store
from memlab.support.errors import MemlabError
from tests.stages.rank.rankings import ranking, shown

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


SCORES = [4.0, 3.0, 1.0, 0.0]


def nucleus(rule: TopP, table) -> list[list[int]]:
    return shown(rule.run(Tables(ranking=table), Store())["ranking"])


def softmax(scores: list[float], temperature: float = 1.0) -> np.ndarray:
    values = np.array(scores)
    raised = np.exp((values - values.mean()) / values.std() / temperature)
    return raised / raised.sum()


@pytest.mark.parametrize("temperature", [.5, 1.0, 3.0])
def test_shares_are_a_softmax_of_standard_scores(temperature) -> None:
    table = with_share(ranking(SCORES, [5.0, 5.0]), "score", temperature, depth=9)
    assert table["share"].to_list() == pytest.approx([*softmax(SCORES, temperature), .5, .5])


def test_the_fewest_units_that_reach_p_are_shown() -> None:
    share = softmax(SCORES)  # .62, .25, .08, .05
    for k in range(1, 4):
        assert nucleus(TopP(p=share[:k].sum() - .01), ranking(SCORES)) == [[*range(1, k + 1)]]
        assert nucleus(TopP(p=share[:k].sum() + .01), ranking(SCORES)) == [[*range(1, k + 2)]]
    assert nucleus(TopP(p=.5), ranking(SCORES, [5.0, 5.0], [1.0])) == [[1], [1], [1]]  # exactly p is enough


def test_calibrated_probabilities_may_skip_units_and_those_without_are_not_shown() -> None:
    table = ranking(SCORES, probability=[.1, .6, None, .3])
    assert nucleus(TopP(p=.55, over="probability"), table) == [[2]]
    assert nucleus(TopP(p=.8, over="probability"), table) == [[2, 4]]
    assert nucleus(TopP(p=.99, over="probability"), table) == [[1, 2, 4]]
    with pytest.raises(MemlabError, match="no column 'probability'"):
        nucleus(TopP(over="probability"), ranking(SCORES))


def test_ranks_beyond_the_depth_share_nothing() -> None:
    assert nucleus(TopP(p=.99, depth=2), ranking([9.0, 8.0, 8.0, 8.0])) == [[1, 2]]


@given(lists, st.integers(1, 8))
def test_a_larger_p_shows_at_least_as_much_and_the_scale_does_not_matter(scores, quarter) -> None:
    sizes = [len(nucleus(rule, ranking(scores))[0]) for rule in TopP(temperature=quarter / 4).variations()]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 1
    p = .61
    assert nucleus(TopP(p=p), ranking(scores)) == nucleus(TopP(p=p), ranking([4 * s - 3 for s in scores]))


STORE = Store()


def world(seed: int, questions: int = 150, units: int = 45) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    scores = [np.sort(rng.normal(size=units))[::-1].tolist() for _ in range(questions)]
    return ranking(*scores, tokens=rng.integers(5, 60, questions * units).astype(float).tolist())


def cut(stage, table: pl.DataFrame) -> pl.DataFrame:
    return stage.run(Tables(ranking=table, questions=asked(table), turns=empty("turns")), STORE)["ranking"]


def asked(table: pl.DataFrame) -> pl.DataFrame:
    """A question of its own text for each number in a ranking."""
    numbers = table["question"].unique().sort()
    return frame("questions", {"question": numbers, "corpus": [0] * len(numbers),
                               "text_id": [text_hash(str(q)) for q in numbers]})


def drawn(table: pl.DataFrame, seed: int = 0) -> pl.DataFrame:
    return draws(asked(table), empty("turns"), seed)


def twin(table: pl.DataFrame, seed: int = 0) -> TokenMatchedK:
    return adaptive_k.token_matched_k(table, drawn(table, seed), seed)


def test_matched_shows_one_more_where_the_draw_falls_below_the_share() -> None:
    table = ranking(*[[3, 2, 1]] * 20)
    got = shown(cut(TokenMatchedK(k=1.5, seed=4), table))
    assert got == [[1, 2] if draw < .5 else [1] for draw in drawn(table, 4)["draw"]]
    assert 3 <= sum(len(g) == 2 for g in got) <= 17


def test_the_twin_of_a_constant_is_that_constant() -> None:
    table = cut(Fixed(k=7), world(1))
    assert cut(twin(table), table).equals(table)


@given(st.integers(0, 99), st.integers(0, 8), st.integers(2, 40))
def test_the_twin_costs_the_same_within_half_a_percent(seed, buffer, max_k) -> None:
    arm = cut(Gap(buffer=buffer, max_k=max_k), world(seed))
    match = twin(arm, seed)
    assert mean_tokens(cut(match, arm)) == pytest.approx(mean_tokens(arm), rel=.005)


def test_lists_that_end_early_count_what_they_have() -> None:
    table = ranking([2, 1], [3, 2, 1, 0], tokens=[10.0, 10.0, 10.0, 10.0, 10.0, 10.0])
    table = table.with_columns(selected=pl.lit(True))
    assert mean_tokens(table) == 30
    assert shown(cut(twin(table), table)) == [[1, 2], [1, 2, 3, 4]]


def test_nothing_ranked_has_no_twin() -> None:
    with pytest.raises(MemlabError, match="no token-matched twin"):
        twin(empty("ranking"))
