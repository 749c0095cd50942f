"""Token counts of texts, made once for all corpora: a term is an integer, a text a sparse row."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
import Stemmer
from numpy.typing import NDArray

LUCENE_STOP_WORDS = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
)
"""Lucene's English stop words, which are bm25s's too."""


@dataclass(frozen=True)
class Counts:
    """Counts of each term in each text.

    texts, queries: (n, terms), of the texts searched and of the texts searched for; lengths: (n,) tokens of each text
    searched, including those in no query.
    """

    texts: scipy.sparse.csr_array
    queries: scipy.sparse.csr_array
    lengths: NDArray[np.int64]


def words(texts: pl.Series, pattern: str, stop_words: tuple[str, ...], stemmer: Literal["english", "none"]
          ) -> pl.DataFrame:
    """Split lower-cased texts by a regular expression; one row per token, in no set order: row (the text's), term.

    Stop words are dropped before stemming. Each distinct word is stemmed once. The expression is matched by the
    Rust engine, for which a combining mark is a word character (Python's re breaks words there).

    >>> words(pl.Series(["The cats sat"]), r"\\w+", ("the",), "english")["term"].sort().to_list()
    ['cat', 'sat']
    """
    tokens = _explode(texts, pl.col("text").str.to_lowercase().str.extract_all(pattern))
    distinct = tokens.select(pl.col("term").unique()).filter(~pl.col("term").is_in(stop_words))
    stems = distinct["term"].to_list()
    if stemmer == "english":
        stems = Stemmer.Stemmer("english").stemWords(stems)
    stemmed = distinct.with_columns(stem=pl.Series(stems, dtype=pl.String))
    return tokens.join(stemmed, on="term").select("row", term="stem")


def split(texts: pl.Series) -> pl.DataFrame:
    """Split texts at each space, as ``str.split(" ")`` does; empty tokens and case stay.

    >>> split(pl.Series(["A  b", ""]))["term"].to_list()
    ['A', '', 'b', '']
    """
    return _explode(texts, pl.col("text").str.split(" "))


def count(texts: pl.DataFrame, queries: pl.DataFrame, sizes: tuple[int, int], whole: bool) -> Counts:
    """Count the tokens of texts and queries (from ``words`` or ``split``).

    sizes: numbers of texts and of queries; whole: count every term, else only those that some query contains, which
    are all that a score needs (a small part of the vocabulary).
    """
    lengths = np.bincount(texts["row"].to_numpy(), minlength=sizes[0])
    counted = pl.concat([queries, texts]) if whole else queries
    terms = counted.select(pl.col("term").unique().sort()).with_row_index("id")
    return Counts(_matrix(texts, terms, sizes[0]), _matrix(queries, terms, sizes[1]), lengths)


def _matrix(tokens: pl.DataFrame, terms: pl.DataFrame, size: int) -> scipy.sparse.csr_array:
    """Return how often each term (its id is its column) occurs in each text (its row)."""
    cells = tokens.join(terms, on="term").group_by("row", "id").len("n")
    at = cells["row"].to_numpy(), cells["id"].to_numpy()
    matrix = scipy.sparse.csr_array((cells["n"].to_numpy().astype(np.int32), at), shape=(size, terms.height))
    matrix.sort_indices()  # terms are summed in one order, whatever the order of the counting threads
    return matrix


def valid_pattern(pattern: str) -> str:
    """Return the pattern if the tokeniser can use it; raise ValueError otherwise.

    >>> valid_pattern("(?<=a)b")
    Traceback (most recent call last):
    ...
    ValueError: pattern '(?<=a)b' is not a regular expression without look-around and back-references
    """
    try:
        re.compile(pattern)
        pl.Series(["a"]).str.extract_all(pattern)
    except (re.error, pl.exceptions.PolarsError):
        raise ValueError(
            f"pattern '{pattern}' is not a regular expression without look-around and back-references") from None
    return pattern


def _explode(texts: pl.Series, tokens: pl.Expr) -> pl.DataFrame:
    """Return one row per token: row (the text's), term."""
    table = texts.alias("text").to_frame().select(tokens.alias("term")).with_row_index("row")
    return table.explode("term").drop_nulls("term")
