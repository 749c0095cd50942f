"""Lexical search: BM25 over words of any language, one lane per kind of memory, with the statistics of each corpus."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from pydantic import Field, field_validator

from memlab.pipeline.stage import Names, stage
from memlab.pipeline.tables import Tables, distinct_texts, empty
from memlab.stages.search.hits import MATCH, HitsBuilder, VisiblePool, memory_pools, visible_pools
from memlab.stages.search.postings import CachedWords, Corpus, Reals, Tokenise, WordPool, lucene_idf
from memlab.store import Store
from memlab.support.text.tokenize import LUCENE_STOP_WORDS, count, known_stemmer, split, valid_pattern, words

Score = Callable[[Corpus, "scipy.sparse.csr_array", int], Reals]
"""(corpus, query, visible) -> scores of the visible texts."""


@stage
class BM25:
    """Search by words, with Lucene's formula. Each distinct text is tokenised once, however many corpora hold it.

    A memory that shares no word with the query is no hit, unless ``unmatched`` keeps it with score 0. Lanes are named
    ``<name>:<kind>``. A query's ``weight`` is not applied here. ``memlab.support.text.tokenize`` says what a word is.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    k1: Annotated[float, Field(ge=0)] = 1.5  # the defaults of bm25s and rank_bm25
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    stop_words: Literal["none", "en"] | Names = "en"  # Lucene's 33; none, or a list
    # auto: English for Latin letters, Arabic, Greek, Hindi, Russian, ... by script; one language of Snowball; none
    stemmer: str = "auto"
    # null: words of any language, folded; a regular expression: its matches in lower case, with accents as they are
    pattern: str | None = None
    kinds: Names | None = None  # kinds of memories to search; null: all
    depth: Annotated[int, Field(ge=1)] = 1000  # most hits per query and kind
    name: str = "lexical"  # lanes are named lexical:<kind>
    # true: memories without a word of the query come last, by id, so that fusion normalises over all memories
    unmatched: bool = False

    @field_validator("pattern")
    @classmethod
    def _usable(cls, value: str | None) -> str | None:
        return None if value is None else valid_pattern(value)

    @field_validator("stemmer")
    @classmethod
    def _check_stemmer(cls, value: str) -> str:
        return known_stemmer(value)

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        named = {"none": (), "en": LUCENE_STOP_WORDS}
        stop = named[self.stop_words] if isinstance(self.stop_words, str) else tuple(self.stop_words)

        def score(corpus: Corpus, query: scipy.sparse.csr_array, visible: int) -> Reals:
            return corpus.scores(query, visible, self.k1, self.b, lucene_idf)

        return search_words(tables, store, self.kinds, self.name, self.depth,
                            tokenise=StemmedWords(self.pattern, stop, self.stemmer), score=score, whole=False,
                            floor=None if self.unmatched else MATCH)


@dataclass(frozen=True)
class StemmedWords:
    """The tokeniser of BM25; equal settings are equal, so that words are cached by tokeniser."""

    pattern: str | None
    stop_words: tuple[str, ...]
    stemmer: str

    def __call__(self, texts: pl.Series) -> pl.DataFrame:
        """Return one row per token of n texts: row (the text's), term."""
        return words(texts, self.pattern, self.stop_words, self.stemmer)


def search_words(tables: Tables, store: Store, kinds: Sequence[str] | None, name: str, depth: int, tokenise: Tokenise,
                 score: Score, whole: bool, floor: float | None = None) -> Tables:
    """Score and rank the memories of each corpus for its queries.

    The store of a live memory keeps the words of the memories, by tokeniser; else all distinct texts are tokenised
    once. whole: whether ``score`` needs the counts of every term, or only of those that occur in some query.
    floor: the lowest score of a hit.
    """
    queries, memories = tables["queries"], tables["memories"]
    # an experiment has hundreds of corpora: one at a time is in memory, and terms that nobody asks for are not counted
    def postings() -> list[WordPool]:
        return store.index(("words", tokenise), lambda: CachedWords(tokenise)).of(tables, kinds)

    key = ("words", tokenise, kinds and tuple(kinds))
    cached = store.cached(tables, ("memories",), key, postings) if store.caches_indexes else None
    pools = [pool.rows for pool in cached] if cached else memory_pools(memories, kinds)
    layout = list(visible_pools(pools, queries, tables["questions"]))
    if not layout:
        return Tables(hits=empty("hits"))
    query_rows = np.unique(np.concatenate([p.queries for p in layout]))
    asked, text_of = distinct_texts(tables["texts"], queries["text_id"].gather(query_rows))
    tokens = tokenise(asked["text"])
    corpus_of: Callable[[VisiblePool], Corpus]
    if cached:
        corpora = {(pool.rows.corpus, pool.rows.kind): pool.corpus for pool in cached}
        counts, corpus_of = cached[0].count(tokens, asked.height), lambda seen: corpora[seen.corpus, seen.kind]
    else:
        counts, corpus_of = _count_all(tables, layout, tokens, asked.height, tokenise, whole)
    memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
    hits = HitsBuilder(floor)
    for pool in layout:
        corpus = corpus_of(pool)
        texts_asked = text_of[np.searchsorted(query_rows, pool.queries)]
        for query, text, visible in zip(pool.queries, texts_asked, pool.visible.tolist()):
            if visible:
                hits.add(f"{name}:{pool.kind}", query_ids[query], memory_ids[pool.memories[:visible]],
                         score(corpus, counts[[text]], visible), depth)
    return Tables(hits=hits.frame())


def _count_all(tables: Tables, layout: Sequence[VisiblePool], asked: pl.DataFrame, questions: int, tokenise: Tokenise,
               whole: bool) -> tuple[scipy.sparse.csr_array, Callable[[VisiblePool], Corpus]]:
    """Tokenise the memories of all pools; return the counts of the tokens asked (row, term), and how to make a corpus.

    One corpus is in memory at a time, since an experiment has hundreds.
    """
    memories = tables["memories"]
    rows = np.unique(np.concatenate([pool.memories for pool in layout]))
    keys, key_of = distinct_texts(tables["texts"], memories["key_id"].gather(rows))
    counts = count(tokenise(keys["text"]), asked, (keys.height, questions), whole)

    def corpus_of(pool: VisiblePool) -> Corpus:
        return Corpus.of(counts.texts, counts.lengths, key_of[np.searchsorted(rows, pool.memories)])

    return counts.queries, corpus_of


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

    def run(self, tables: Tables, store: Store) -> Tables:
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        return search_words(tables, store, self.kinds, self.name, self.depth, tokenise=split, score=self._score,
                            whole=True)

    def _score(self, corpus: Corpus, query: scipy.sparse.csr_array, visible: int) -> Reals:
        floor = self.epsilon * _mean_idf(corpus, visible)

        def idf(n: int, df: int) -> float:
            plain = math.log(n - df + 0.5) - math.log(df + 0.5)
            return floor if plain < 0 else plain

        return corpus.scores(query, visible, self.k1, self.b, idf, most=self.k1 + 1)


def _mean_idf(corpus: Corpus, visible: int) -> float:
    """Return the mean idf, negative ones included, over the terms of the first ``visible`` texts."""
    df = corpus.document_frequencies(visible)
    df = df[df > 0]
    return float(np.mean(np.log(visible - df + 0.5) - np.log(df + 0.5))) if len(df) else 0.0
