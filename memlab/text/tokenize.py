"""Token counts of texts, made once for all corpora: a term is an integer, a text a sparse row."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.text.word_forms import WORD, fold, normalise, pieces, stems

LUCENE_STOP_WORDS = (
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not", "of",
    "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with",
)
"""Lucene's English stop words, which are bm25s's too."""

NO_MARKS = ("auto", "english", "none")
"""Stemmers that get words without accents: English rules know none, while those of other languages need them."""


@dataclass(frozen=True)
class Counts:
    """Counts of each term in each text.

    texts, queries: (n, terms), of the texts searched and of the texts searched for; lengths: (n,) tokens of each text
    searched, including those in no query.
    """

    texts: scipy.sparse.csr_array
    queries: scipy.sparse.csr_array
    lengths: NDArray[np.int64]


def words(texts: pl.Series, pattern: str | None, stop_words: tuple[str, ...], stemmer: str) -> pl.DataFrame:
    """Split texts into terms; one row per term, in no set order: row (the text's), term.

    Without a pattern the words of any language are found, and compared in the forms of ``memlab.text.word_forms``. With
    one, texts are lower-cased and split by that regular expression, and neither accents nor widths are folded. Scripts
    without spaces are split into characters and pairs either way. Stop words are dropped before stemming. Each distinct
    word is folded and stemmed once. The expression is matched by the Rust engine, for which a combining mark is a word
    character (Python's re breaks words there).

    >>> words(pl.Series(["The cats sat"]), r"\\w+", ("the",), "english")["term"].sort().to_list()
    ['cat', 'sat']
    >>> words(pl.Series(["Das Café in 東京"]), None, (), "none")["term"].sort().to_list()
    ['cafe', 'das', 'in', '京', '東', '東京']
    """
    text = pl.col("text").map_batches(normalise, pl.String) if pattern is None else pl.col("text").str.to_lowercase()
    tokens = _explode(texts, text.str.extract_all(WORD if pattern is None else pattern))
    terms = _terms(tokens["term"].unique(), pattern is None, stop_words, stemmer)
    return tokens.join(terms, on="term").select("row", term="stem")


def _terms(distinct: pl.Series, folded: bool, stop_words: tuple[str, ...], stemmer: str) -> pl.DataFrame:
    """Return the terms of each distinct word: term (the word), stem."""
    plain = pl.col("term").str.contains("^[a-z0-9_]*$")
    parts = distinct.alias("term").to_frame().with_columns(piece="term")
    stops = frozenset(normalise(pl.Series(stop_words, dtype=pl.String)) if folded else stop_words)
    odd = [(word, piece) for word in parts.filter(~plain)["term"] for piece in _forms(word, folded, stemmer, stops)]
    table = pl.concat([parts.filter(plain & ~pl.col("term").is_in(list(stops))),
                       pl.DataFrame(odd, schema=parts.schema, orient="row")])
    found = stems(table["piece"].to_list(), stemmer)
    if folded and stemmer not in NO_MARKS:
        found = [fold(stem) for stem in found]
    return table.select("term", pl.Series("stem", found, dtype=pl.String))


def _forms(word: str, folded: bool, stemmer: str, stops: frozenset[str]) -> list[str]:
    """Return what is compared of a word that has more than ASCII letters, before stemming, without stop words.

    Stop words are those before accents are folded: "thé" is not "the".
    """
    if not folded:
        return [part for part in pieces(word) if part not in stops]
    word = word.strip(" \t\n\r\f\v(")  # stands before the dot of a name
    parts = [word, word[1:]] if word.startswith(".") else pieces(word)
    several = len(parts) > 1
    parts = [fold(part) if stemmer in NO_MARKS else part for part in parts if part not in stops]
    return [part for part in parts if len(part) > 1 or several or not part.isascii()]


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
