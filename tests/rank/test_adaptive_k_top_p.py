from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memlab.errors import MemlabError
from memlab.rank.adaptive_k import TopP, with_share
from memlab.store import Store
from memlab.tables import Tables
from tests.rank.rankings import ranking, shown

SCORES = [4.0, 3.0, 1.0, 0.0]


def ranks(rule: TopP, table) -> list[list[int]]:
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
        assert ranks(TopP(p=share[:k].sum() - .01), ranking(SCORES)) == [[*range(1, k + 1)]]
        assert ranks(TopP(p=share[:k].sum() + .01), ranking(SCORES)) == [[*range(1, k + 2)]]
    assert ranks(TopP(p=.5), ranking(SCORES, [5.0, 5.0], [1.0])) == [[1], [1], [1]]  # exactly p is enough


def test_calibrated_probabilities_may_skip_units_and_those_without_are_not_shown() -> None:
    table = ranking(SCORES, probability=[.1, .6, None, .3])
    assert ranks(TopP(p=.55, over="probability"), table) == [[2]]
    assert ranks(TopP(p=.8, over="probability"), table) == [[2, 4]]
    assert ranks(TopP(p=.99, over="probability"), table) == [[1, 2, 4]]
    with pytest.raises(MemlabError, match="no column 'probability'"):
        ranks(TopP(over="probability"), ranking(SCORES))


def test_ranks_beyond_the_depth_share_nothing() -> None:
    assert ranks(TopP(p=.99, depth=2), ranking([9.0, 8.0, 8.0, 8.0])) == [[1, 2]]


lists = st.lists(st.integers(-40, 40).map(lambda i: i / 4), min_size=1, max_size=30).map(
    lambda scores: sorted(scores, reverse=True))


@given(lists, st.integers(1, 8))
def test_a_larger_p_shows_at_least_as_much_and_the_scale_does_not_matter(scores, quarter) -> None:
    sizes = [len(ranks(rule, ranking(scores))[0]) for rule in TopP(temperature=quarter / 4).variations()]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 1
    p = .61
    assert ranks(TopP(p=p), ranking(scores)) == ranks(TopP(p=p), ranking([4 * s - 3 for s in scores]))
