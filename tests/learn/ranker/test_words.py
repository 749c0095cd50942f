from __future__ import annotations

import numpy as np
import polars as pl
import pytest
import scipy

from memlab.learn.ranker.words import FIRST_TURNS, Terms, likeness_features


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
