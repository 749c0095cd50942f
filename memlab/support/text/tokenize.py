"""Words of any language: the forms in which they are compared, and their counts in texts.

This is what Lucene's analysers do, in one tokeniser: NFKC and case folding (``ICUFoldingFilter``), characters and pairs
of characters where words have no spaces (``CJKBigramFilter``), the letters that Arabic and Hindi write in several ways
(``ArabicNormalizer``, ``HindiNormalizer``), and decimal digits of any script (``DecimalDigitFilter``). Texts and
queries get the same forms, so they match however they are typed. Nothing here knows a dictionary: traditional and
simplified Chinese stay two words, and so do "Müller" and "Mueller".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
import Stemmer
from numpy.typing import NDArray

from memlab.support.errors import did_you_mean

_SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\x{30FC}"
_SPACED = rf"[\w--[{_SPACELESS}]]"

WORD = "|".join((
    # boundaries between ASCII letters alone, since names stand in texts without spaces too
    r"\p{L}(?:\+\+|#|[+*](?-u:\B))",                                 # C++, C#, A*; but "a*b" is no name
    r"(?-u:\b)[a-z0-9]{1,2}&[a-z0-9]{1,2}(?-u:\b)",                  # R&D, AT&T
    rf"(?m:^|[\s(])\.[\p{{L}}--[{_SPACELESS}]]{_SPACED}+",           # .NET, .gitignore
    r"\x{1F3F4}[\x{E0020}-\x{E007F}]+|\p{Regional_Indicator}{2}",    # flags
    r"[\p{Extended_Pictographic}--[©®]]",                            # an emoji, without the tone of its skin
    rf"{_SPACED}*[{_SPACELESS}]+(?:{_SPACED}+[{_SPACELESS}]+)*\d*",  # ends before a name
    r"\w\w+",
))
"""What a word is, in texts that ``normalise`` has been through: two or more word characters, or a name with symbols."""

_ODD = r"[^\x00-\x7F\u2010-\u2027\u2022\u2026]"
_INVISIBLE = r"[\u00AD\u034F\u061C\u180E\u200B-\u200F\u202A-\u202E\u2060-\u2069\uFE00-\uFE0F\uFEFF\u2122]"
"""Hyphens that may break a line, joiners, marks of direction, variants of an emoji; the sign TM, which is no word."""

_OPTIONAL = re.compile("|".join((
    r"(?<![\u0400-\u04FF])[\u0300-\u036F]|[\u0300\u0301]",          # accents, but Cyrillic й and ї are letters
    r"[\u0591-\u05BD\u05BF\u05C1-\u05C7]",                          # Hebrew points
    r"[\u0610-\u061A\u0640\u064B-\u065F\u0670\u06D6-\u06ED]",       # Arabic vowel signs and stretching
    r"[\u093C\u09BC\u0A3C\u0ABC\u0B3C\u0CBC]",                      # the dot below of Indian scripts
)))
_NASAL = re.compile(r"\u0901|[ङञणनम]\u094D(?=[क-ह])")               # हिन्दी is written हिंदी too
_LETTERS = str.maketrans({
    "ı": "i", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ħ": "h", "ё": "е",
    "أ": "ا", "إ": "ا", "آ": "ا", "ٱ": "ا", "ى": "ي", "ی": "ي", "ک": "ك", "ة": "ه",
})

_OF_SCRIPT = {"ARMENIAN": "armenian", "CYRILLIC": "russian", "DEVANAGARI": "hindi", "GREEK": "greek", "TAMIL": "tamil"}
_ARABIC_PREFIX = re.compile(r"^(?:[وبكف]?ال|لل)(?=..)|^و(?=...)")
_ARABIC_SUFFIX = re.compile(r"(?<=...)(?:تها|ته|تي)$|(?<=..)(?:ها|ان|ات|ون|ين|يه|ه|ي)$")


def normalise(texts: pl.Series) -> pl.Series:
    """Return texts (n,) in NFKC and lower case, without invisible characters; ASCII is only lower-cased.

    >>> normalise(pl.Series(["Ｃ＋＋ ﬁle", "ÉCOLE"])).to_list()
    ['c++ file', 'école']
    """
    odd = texts.str.contains(_ODD).fill_null(False)
    if odd.any():
        clean = texts.filter(odd).str.replace_all(_INVISIBLE, "").str.normalize("NFKC")
        texts = texts.scatter(odd.arg_true(), clean)
    return texts.str.to_lowercase()


def fold(word: str) -> str:
    """Fold the case, the accents and the other optional marks of a word in NFKC.

    Marks that make another letter stay, as in Japanese, Korean, Thai and Hindi.

    >>> [fold(word) for word in ("straße", "élève", "i̇stanbul", "ısı", "が", "йога", "مَدْرَسَة", "हिन्दी", "२०")]
    ['strasse', 'eleve', 'istanbul', 'isi', 'が', 'йога', 'مدرسه', 'हिंदी', '20']
    """
    if word.isascii():
        return word
    bare = _OPTIONAL.sub("", unicodedata.normalize("NFD", word.casefold()))
    letters = unicodedata.normalize("NFC", _NASAL.sub("\u0902", bare)).translate(_LETTERS)
    return "".join(str(unicodedata.decimal(letter, letter)) for letter in letters)


def pieces(word: str) -> list[str]:
    """Split what is written without spaces; return other words as they are.

    Of Chinese, Japanese and Korean each character, which may be a word, and each two neighbours; of Thai, Lao, Khmer
    and Burmese, whose characters are only sounds, two neighbours with their vowel signs and tones.

    >>> pieces("iphone15を買う"), pieces("ที่บ้าน"), pieces("café")
    (['iphone15', 'を', '買', 'う', 'を買', '買う'], ['ที่บ้', 'บ้า', 'าน'], ['café'])
    """
    if word.isascii():
        return [word]
    found: list[str] = []
    for kind, clusters in _runs(word):
        if kind == "word":
            found.append("".join(clusters))
            continue
        if kind == "wide" or len(clusters) == 1:
            found += clusters
        found += map("".join, zip(clusters, clusters[1:]))
    return found


def characters(word: str) -> list[str]:
    """Split what is written without spaces into its characters, in order; return other words as they are.

    >>> characters("iphone15を買う"), characters("café")
    (['iphone15', 'を', '買', 'う'], ['café'])
    """
    if word.isascii():
        return [word]
    return [part for kind, clusters in _runs(word)
            for part in (["".join(clusters)] if kind == "word" else clusters)]


def known_stemmer(name: str) -> str:
    """Return the name of a stemmer; ValueError for one that there is not."""
    known = ("auto", "none", *Stemmer.algorithms())
    if name not in known:
        raise ValueError(f"no stemmer is called '{name}': {did_you_mean(name, known)}")
    return name


def stems(words: Sequence[str], stemmer: str) -> list[str]:
    """Stem words by Snowball's rules of one language; ``auto``: by script, English for Latin letters; ``none``: not.

    Arabic has Larkey's light10 in place of Snowball's rules, which take letters of the root ("Light Stemming for Arabic
    Information Retrieval", 2007), here with the endings of feminine nouns that belong to somebody.

    >>> stems(["cats", "кошки", "والمدرسه", "किताबें", "東京"], "auto")
    ['cat', 'кошк', 'مدرس', 'किताब', '東京']
    """
    if stemmer == "none":
        return list(words)
    if stemmer != "auto":
        return list(Stemmer.Stemmer(stemmer).stemWords(list(words)))
    scripts = ["" if word.isascii() else unicodedata.name(word[0], "").split(" ")[0] for word in words]
    found = list(Stemmer.Stemmer("english").stemWords(list(words)))
    for script in {*scripts} & {*_OF_SCRIPT, "ARABIC"}:
        rows = [row for row, one in enumerate(scripts) if one == script]
        its = [words[row] for row in rows]
        light = ([_ARABIC_SUFFIX.sub("", _ARABIC_PREFIX.sub("", word)) for word in its] if script == "ARABIC"
                 else Stemmer.Stemmer(_OF_SCRIPT[script]).stemWords(its))
        for row, stem in zip(rows, light):
            found[row] = stem
    return found


def _runs(word: str) -> list[tuple[str, list[str]]]:
    """Return the runs of one kind in a word: (kind, its characters)."""
    return [(kind, list(run)) for kind, run in groupby(_clusters(word), lambda cluster: _kind(cluster[0]))]


def _clusters(word: str) -> list[str]:
    """Return the characters of a word, each with the marks behind it."""
    found: list[str] = []
    for letter in word:
        if found and unicodedata.category(letter).startswith("M"):
            found[-1] += letter
        else:
            found.append(letter)
    return found


def _kind(letter: str) -> str:
    """Return whether a letter is "wide" (East Asian), of a "syllabic" script of South-East Asia, or of a "word"."""
    if unicodedata.decimal(letter, None) is not None:
        return "word"
    if unicodedata.east_asian_width(letter) in "WF":
        return "wide"
    return "syllabic" if "\u0E00" <= letter <= "\u0EFF" or "\u1000" <= letter <= "\u109F" or (
        "\u1780" <= letter <= "\u17FF") else "word"


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

    Without a pattern the words of any language are found, and compared in the forms of
    ``memlab.support.text.tokenize``. With
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
