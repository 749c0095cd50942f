"""The BM25 of LongMemEval's own retrieval code: Okapi over ``text.split(" ")``, case-sensitive, unstemmed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from pydantic import Field
from scipy.sparse import csr_array

from memlab.search.bm25 import Corpus, Reals
from memlab.search.lexical import search_words
from memlab.search.tokens import split
from memlab.stage import Names, stage
from memlab.tables import Tables

if TYPE_CHECKING:
    from memlab.store import Store


@stage
class BM25Official:
    """Okapi BM25 with the same figures as ``rank_bm25.BM25Okapi``, which the benchmark uses.

    A term's idf is ln(N - df + .5) - ln(df + .5); where that is negative it is ``epsilon`` times the mean idf of
    the corpus's vocabulary. Every memory is ranked, those with score 0 too; ties go by memory id.
    """

    reads: ClassVar = ("queries", "questions", "memories", "texts")
    writes: ClassVar = ("hits",)

    k1: Annotated[float, Field(ge=0)] = 1.5
    b: Annotated[float, Field(ge=0, le=1)] = 0.75
    epsilon: float = 0.25
    kinds: Names | None = None
    depth: Annotated[int, Field(ge=1)] = 1000
    name: str = "lexical"

    def run(self, tables: Tables, store: Store) -> Tables:  # noqa: ARG002  (tokenising is cheaper than keeping it)
        """Return the best ``depth`` memories of every kind for every query; MemlabError for an unknown kind."""
        return search_words(tables, self.kinds, self.name, self.depth, tokenise=split, score=self._score, whole=True)

    def _score(self, corpus: Corpus, query: csr_array, seen: int) -> Reals:
        floor = self.epsilon * _mean_idf(corpus, seen)

        def idf(n: int, df: int) -> float:
            plain = math.log(n - df + 0.5) - math.log(df + 0.5)
            return floor if plain < 0 else plain

        return corpus.scores(query, seen, "atire", self.k1, self.b, 0.0, idf)


def _mean_idf(corpus: Corpus, seen: int) -> float:
    """Return the mean of the unfloored idf over the terms of the first ``seen`` texts."""
    postings = corpus.postings
    terms = np.repeat(np.arange(postings.shape[1]), np.diff(postings.indptr))
    df = np.bincount(terms[postings.indices < seen], minlength=postings.shape[1])
    df = df[df > 0]
    return float(np.mean(np.log(seen - df + 0.5) - np.log(df + 0.5))) if len(df) else 0.0
