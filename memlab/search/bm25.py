"""Lexical search: BM25 over stemmed words, one lane per kind of memory, with the statistics of each corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from pydantic import Field, field_validator

from memlab.models.protocols import Ints
from memlab.search.as_of import pools
from memlab.search.hits import HitsBuilder
from memlab.stage import Names, stage
from memlab.store import Store
from memlab.tables import Tables, distinct_texts, empty
from memlab.text.tokenize import LUCENE_STOP_WORDS, count, split, valid_pattern, words

Form = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]
Reals = NDArray[np.float64]
Idf = Callable[[int, int], float]  # (N, df) -> weight of the term
Tokenise = Callable[[pl.Series], pl.DataFrame]

IDF: dict[str, Idf] = {
    "robertson": lambda n, df: float(np.log(max(1.0, (n - df + 0.5) / (df + 0.5)))),
    "lucene": lambda n, df: float(np.log(1 + (n - df + 0.5) / (df + 0.5))),
    "atire": lambda n, df: float(np.log(n / df)),
    "bm25l": lambda n, df: float(np.log((n + 1) / (df + 0.5))),
    "bm25+": lambda n, df: float(np.log((n + 1) / df)),
}


def term_weight(form: Form, tf: Reals, norm: Reals, k1: float, delta: float) -> Reals:
    """Return the weight of the term frequencies tf (n,) under the length norms 1 - b + b L / A (n,)."""
    if form == "bm25l":
        scaled = tf / norm + delta
        return (k1 + 1) * scaled / (k1 + scaled)
    if form == "bm25+":
        return tf * (k1 + 1) / (tf + k1 * norm) + delta
    return tf * (k1 + 1 if form == "atire" else 1.0) / (tf + k1 * norm)


@dataclass(frozen=True)
class Corpus:
    """One pool of memories, in the order of the pool: term counts (n, terms) and lengths (n,)."""

    postings: scipy.sparse.csc_array
    lengths: Ints

    @classmethod
    def of(cls, counts: scipy.sparse.csr_array, lengths: Ints, rows: Ints) -> Corpus:
        """Return the corpus of these rows of all texts."""
        postings = counts[rows].tocsc()
        postings.sort_indices()
        return cls(postings, lengths[rows])

    def scores(self, query: scipy.sparse.csr_array, visible: int, form: Form, k1: float, b: float, delta: float,
               idf: Idf) -> Reals:
        """Score the first ``visible`` texts for a query (1, terms), each term as often as it is there: (visible,)."""
        lengths = self.lengths[:visible]
        mean = lengths.mean() if lengths.any() else 1.0
        norm = 1 - b + b * lengths / mean
        total = np.zeros(visible)
        for term, times in zip(query.indices, query.data):
            start, end = self.postings.indptr[term:term + 2]
            texts = self.postings.indices[start:end]
            df = int(np.searchsorted(texts, visible))
            if df == 0:
                continue
            texts, tf = texts[:df], self.postings.data[start:start + df].astype(np.float64)
            weight = times * idf(visible, df)
            absent = float(term_weight(form, np.zeros(1), np.ones(1), k1, delta)[0])  # does not depend on the length
            total += weight * absent
            total[texts] += weight * (term_weight(form, tf, norm[texts], k1, delta) - absent)
        return total


Score = Callable[[Corpus, "scipy.sparse.csr_array", int], Reals]
"""(corpus, query, visible) -> scores of the visible texts."""


@stage
class BM25:
    """Search by words. Each distinct text is tokenised once, however many corpora hold it.

    Memories that share no word with the query score 0 and are ranked last, by id, unless ``floor`` excludes them. Lanes
    are named ``<name>:<kind>``. A query's ``weight`` is not applied here.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    k1: Annotated[float, Field(ge=0)] = 1.5  # the defaults of bm25s and rank_bm25
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    method: Form = "lucene"  # lucene | robertson | atire | bm25l | bm25+
    delta: Annotated[float, Field(ge=0)] = 0.5  # bm25l and bm25+ only
    stop_words: Literal["none", "en"] | Names = "en"  # Lucene's 33; none, or a list
    stemmer: Literal["english", "none"] = "english"  # Snowball; none
    pattern: str = r"\b\w\w+\b"  # a word: two or more word characters
    kinds: Names | None = None  # kinds of memories to search; null: all
    depth: Annotated[int, Field(ge=1)] = 1000  # hits per query and kind, those of score 0 included
    name: str = "lexical"  # lanes are named lexical:<kind>
    # lowest score of a hit; 1e-6: only memories that share a word, as in full-text engines
    floor: Annotated[float, Field(ge=0)] | None = None

    @field_validator("pattern")
    @classmethod
    def _usable(cls, value: str) -> str:
        return valid_pattern(value)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002  (tokenising is cheaper than storing it)
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        named = {"none": (), "en": LUCENE_STOP_WORDS}
        stop = named[self.stop_words] if isinstance(self.stop_words, str) else self.stop_words

        def score(corpus: Corpus, query: scipy.sparse.csr_array, visible: int) -> Reals:
            return corpus.scores(query, visible, self.method, self.k1, self.b, self.delta, IDF[self.method])

        return search_words(
            tables, self.kinds, self.name, self.depth,
            tokenise=lambda texts: words(texts, self.pattern, stop, self.stemmer), score=score, whole=False,
            floor=self.floor)


def search_words(tables: Tables, kinds: Sequence[str] | None, name: str, depth: int, tokenise: Tokenise,
                 score: Score, whole: bool, floor: float | None = None) -> Tables:
    """Tokenise all distinct texts once; score and rank the memories of each corpus for its queries.

    whole: whether ``score`` needs the counts of every term, or only of those that occur in some query.
    floor: the lowest score of a hit.
    """
    queries, memories, texts = tables["queries"], tables["memories"], tables["texts"]
    layout = list(pools(queries, tables["questions"], memories, kinds))
    if not layout:
        return Tables(hits=empty("hits"))
    memory_rows = np.unique(np.concatenate([p.memories for p in layout]))
    query_rows = np.unique(np.concatenate([p.queries for p in layout]))
    keys, key_of = distinct_texts(texts, memories["key_id"].gather(memory_rows))
    asked, text_of = distinct_texts(texts, queries["text_id"].gather(query_rows))
    counts = count(tokenise(keys["text"]), tokenise(asked["text"]), (keys.height, asked.height), whole)
    memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
    hits = HitsBuilder(floor)
    for pool in layout:
        corpus = Corpus.of(counts.texts, counts.lengths, key_of[np.searchsorted(memory_rows, pool.memories)])
        texts_asked = text_of[np.searchsorted(query_rows, pool.queries)]
        for query, text, visible in zip(pool.queries, texts_asked, pool.visible.tolist()):
            if visible:
                hits.add(f"{name}:{pool.kind}", query_ids[query], memory_ids[pool.memories[:visible]],
                         score(corpus, counts.queries[[text]], visible), depth)
    return Tables(hits=hits.frame())


@stage
class BM25Okapi:
    """Okapi BM25 with the same figures as ``rank_bm25.BM25Okapi``, which the benchmark uses.

    A term's idf is ln(N - df + .5) - ln(df + .5); if that is negative, ``epsilon`` times the mean idf of the corpus's
    vocabulary. Memories with score 0 are ranked too; ties go by memory id.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    k1: Annotated[float, Field(ge=0)] = 1.5  # all three as in rank_bm25
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    epsilon: float = 0.25  # share of the mean idf that a term with a negative idf gets
    kinds: Names | None = None  # null: all
    depth: Annotated[int, Field(ge=1)] = 1000  # more than any haystack of S: the official nDCG ranks every memory
    name: str = "lexical"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002  (tokenising is cheaper than storing it)
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        return search_words(tables, self.kinds, self.name, self.depth, tokenise=split, score=self._score, whole=True)

    def _score(self, corpus: Corpus, query: scipy.sparse.csr_array, visible: int) -> Reals:
        floor = self.epsilon * _mean_idf(corpus, visible)

        def idf(n: int, df: int) -> float:
            plain = math.log(n - df + 0.5) - math.log(df + 0.5)
            return floor if plain < 0 else plain

        return corpus.scores(query, visible, "atire", self.k1, self.b, 0.0, idf)


def _mean_idf(corpus: Corpus, visible: int) -> float:
    """Return the mean idf, negative ones included, over the terms of the first ``visible`` texts."""
    postings = corpus.postings
    terms = np.repeat(np.arange(postings.shape[1]), np.diff(postings.indptr))
    df = np.bincount(terms[postings.indices < visible], minlength=postings.shape[1])
    df = df[df > 0]
    return float(np.mean(np.log(visible - df + 0.5) - np.log(df + 0.5))) if len(df) else 0.0
