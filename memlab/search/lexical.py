"""Lexical search: BM25 over stemmed words, one lane a kind of memory, statistics a corpus."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field, field_validator
from scipy.sparse import csr_array

from memlab.search.bm25 import IDF, Corpus, Form, Reals
from memlab.search.eligible import distinct_texts, pools
from memlab.search.hits import DIGITS, HitsBuilder
from memlab.search.tokens import LUCENE_STOP_WORDS, count, valid_pattern, words
from memlab.stage import Names, stage
from memlab.tables import Tables, empty

if TYPE_CHECKING:
    from memlab.store import Store

Tokenise = Callable[[pl.Series], pl.DataFrame]
Score = Callable[[Corpus, csr_array, int], Reals]


@stage
class BM25:
    """Search by words. Every distinct text is tokenised once, whatever the number of corpora that hold it.

    Memories that share no word with the query score 0 and are ranked too, last, by id, unless they are below
    ``floor`` (1e-6 keeps all that share a word). Lanes are named ``<name>:<kind>``. A query's ``weight`` is not
    applied here. The forms are in ``memlab.search.bm25``.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    k1: Annotated[float, Field(ge=0)] = 1.5
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    method: Form = "lucene"
    delta: Annotated[float, Field(ge=0)] = 0.5
    stop_words: Literal["none", "en"] | Names = "en"
    stemmer: Literal["english", "none"] = "english"
    pattern: str = r"\b\w\w+\b"
    kinds: Names | None = None
    depth: Annotated[int, Field(ge=1)] = 1000
    name: str = "lexical"
    floor: Annotated[float, Field(ge=0)] | None = None

    @field_validator("pattern")
    @classmethod
    def _usable(cls, value: str) -> str:
        return valid_pattern(value)

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002  (tokenising is cheaper than keeping it)
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        named = {"none": (), "en": LUCENE_STOP_WORDS}
        stop = named[self.stop_words] if isinstance(self.stop_words, str) else self.stop_words

        def score(corpus: Corpus, query: csr_array, seen: int) -> Reals:
            return corpus.scores(query, seen, self.method, self.k1, self.b, self.delta, IDF[self.method])

        return search_words(
            tables, self.kinds, self.name, self.depth,
            tokenise=lambda texts: words(texts, self.pattern, stop, self.stemmer), score=score, whole=False,
            floor=self.floor)


def search_words(tables: Tables, kinds: Sequence[str] | None, name: str, depth: int, tokenise: Tokenise,
                 score: Score, whole: bool, floor: float | None = None) -> Tables:
    """Tokenise all distinct texts once, slice the counts by corpus, score each query there, and rank.

    whole: whether ``score`` needs the counts of every term, or only of those that occur in some query.
    floor: the lowest score of a hit.
    """
    queries, memories, texts = tables["queries"], tables["memories"], tables["texts"]
    layout = list(pools(queries, tables["questions"], memories, kinds))
    if not layout:
        return Tables(hits=empty("hits"))
    keyed = np.unique(np.concatenate([p.memories for p in layout]))
    asked = np.unique(np.concatenate([p.queries for p in layout]))
    keys, key_of = distinct_texts(texts, memories["key"].gather(keyed))
    asks, ask_of = distinct_texts(texts, queries["text"].gather(asked))
    counts = count(tokenise(keys["text"]), tokenise(asks["text"]), (keys.height, asks.height), whole)
    memory_ids, query_ids = memories["memory"].to_numpy(), queries["query"].to_numpy()
    hits = HitsBuilder()
    for pool in layout:
        corpus = Corpus.of(counts.texts, counts.lengths, key_of[np.searchsorted(keyed, pool.memories)])
        for query, ask, seen in zip(pool.queries, ask_of[np.searchsorted(asked, pool.queries)], pool.seen.tolist()):
            if seen:
                scores, ids = score(corpus, counts.queries[[ask]], seen), memory_ids[pool.memories[:seen]]
                if floor is not None:
                    high = np.round(scores, DIGITS) >= floor
                    scores, ids = scores[high], ids[high]
                hits.add(f"{name}:{pool.kind}", query_ids[query], ids, scores, depth)
    return Tables(hits=hits.frame())
