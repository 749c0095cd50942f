from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from memlab.learn.ranker.words import FIRST_TURNS, Terms, likeness, likeness_features


def terms(*texts: str) -> Terms:
    """One turn per row with these words."""
    vocabulary = sorted({word for text in texts for word in text.split()})
    matrix = np.array([[word in text.split() for word in vocabulary] for text in texts], np.float64)
    return Terms(scipy.sparse.csr_array(matrix), np.arange(len(texts)))


def by_hand(texts: list[str], question: list[int], one: int, other: int) -> float:
    """The likeness of two texts of a question, from sets of words."""
    held = [set(text.split()) for text, of in zip(texts, question) if of == question[one]]

    def weight(words: set[str]) -> float:
        return sum(np.log(1 + len(held) / sum(word in mine for mine in held)) for word in words)

    a, b = set(texts[one].split()), set(texts[other].split())
    return weight(a & b) / weight(a | b) if a | b else 0.0


texts = st.lists(st.lists(st.sampled_from("abcdefg"), max_size=5).map(" ".join), min_size=1, max_size=14)


@given(texts, st.data())
def test_likeness_is_the_shared_weight_over_that_of_either(said: list[str], data: st.DataObject) -> None:
    question = data.draw(st.lists(st.integers(0, 2), min_size=len(said), max_size=len(said)))
    rank = [sum(of == mine for of in question[:row]) for row, mine in enumerate(question)]
    found = likeness(terms(*said), np.arange(len(said)), np.array(question), np.array(rank), 2)
    for row, mine in enumerate(question):
        for place in range(2):
            others = [other for other, of in enumerate(question) if of == mine and rank[other] == place]
            if not others or others == [row]:
                assert np.isnan(found[row, place])
            else:
                assert found[row, place] == pytest.approx(by_hand(said, question, row, others[0]))


def test_the_feature_is_the_mean_over_the_first_turns_but_itself() -> None:
    said = ["red tea", "tea", "red cup", "green tea", "alone"]
    question = [3, 3, 3, 3, 9]
    head = pl.DataFrame({"question": question, "unit": range(5), "rank": [2, 1, 3, 4, 1]})
    column = likeness_features(head, terms(*said))["likeness"].to_list()

    def mean(row: int, *others: int) -> float:
        return float(np.mean([by_hand(said, question, row, other) for other in others]))

    assert FIRST_TURNS == 3
    assert column[:4] == pytest.approx([mean(0, 1, 2), mean(1, 0, 2), mean(2, 0, 1), mean(3, 0, 1, 2)])
    assert column[4] is None  # a question with one turn
    assert likeness_features(head.head(0), Terms(terms("a").matrix, np.zeros(0, np.int64))).height == 0
