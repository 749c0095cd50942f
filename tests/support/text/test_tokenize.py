"""Texts to counts."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from memlab.stages.search.bm25 import BM25
from memlab.support.text.tokenize import count, split, words

ascii_texts = st.lists(st.text(alphabet=st.characters(min_codepoint=9, max_codepoint=126), max_size=40), max_size=8)


@given(ascii_texts)
def test_split_is_that_of_str(texts: list[str]) -> None:
    got = split(pl.Series(texts, dtype=pl.String))
    assert got.rows() == [(i, token) for i, text in enumerate(texts) for token in text.split(" ")]


@given(ascii_texts)
def test_words_are_those_of_re(texts: list[str]) -> None:
    got = words(pl.Series(texts, dtype=pl.String), r"\b\w\w+\b", ("the", "an"), "none")
    assert sorted(got.rows()) == sorted(
        (i, token) for i, text in enumerate(texts) for token in re.findall(r"\b\w\w+\b", text.lower())
        if token not in ("the", "an"))


def test_stop_words_fall_before_stemming() -> None:
    got = words(pl.Series(["Being beings THE cats"]), r"\w+", ("being", "the"), "english")
    assert sorted(got["term"]) == ["be", "cat"]


def test_counts_by_hand() -> None:
    texts, queries = pl.Series(["b a b", "c", ""]), pl.Series(["b z", "a a"])
    part = count(split(texts), split(queries), (3, 2), whole=False)
    assert part.lengths.tolist() == [3, 1, 1]
    assert part.texts.shape == (3, 3)  # a, b, z: only what some query holds
    products = part.texts.toarray() @ part.queries.toarray().T
    assert products.tolist() == [[2, 2], [0, 0], [0, 0]]
    full = count(split(texts), split(queries), (3, 2), whole=True)
    assert full.texts.sum() == 5
    assert np.array_equal(full.texts.toarray() @ full.queries.toarray().T, products)


@pytest.mark.parametrize("pattern", ["(", r"(?<=a)b", r"(a)\1"])
def test_an_unusable_pattern_is_refused_when_the_stage_is_made(pattern: str) -> None:
    with pytest.raises(ValidationError, match="regular expression without look-around"):
        BM25(pattern=pattern)


def test_scripts_without_spaces_are_split_under_a_pattern_too() -> None:
    got = words(pl.Series(["Caf\u00e9 \u6771\u4eac"]), r"\w+", (), "english")
    assert sorted(got["term"]) == ["caf\u00e9", "\u4eac", "\u6771", "\u6771\u4eac"]


ALPHABET = ("aE\u00e9\u00df\u0130I\u0131\u732b\u304c\u30ab\ud55c\u0e17\u0e35\u0e48\u0643\u0915\u093c"
            "+#&. 5\U0001f44d\U0001f3fd\u200d")


@given(st.lists(st.text(alphabet=ALPHABET, max_size=12), min_size=1, max_size=5))
def test_composed_and_decomposed_texts_have_the_same_terms(texts: list[str]) -> None:
    """Composed or decomposed letters."""
    def terms(some: list[str]) -> list[tuple[int, str]]:
        return sorted(words(pl.Series(some, dtype=pl.String), None, (), "auto").rows())

    assert terms([unicodedata.normalize("NFD", text) for text in texts]) == terms(texts)
    assert terms([unicodedata.normalize("NFC", text) for text in texts]) == terms(texts)
