"""One pool of memories as postings, and its BM25 scores; only what a query sees counts in the document frequencies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.models.protocols import Ints

Form = Literal["lucene", "robertson", "atire", "bm25l", "bm25+"]
Reals = NDArray[np.float64]
Idf = Callable[[int, int], float]  # (N, df) -> weight of the term

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

    def matches(self, query: scipy.sparse.csr_array, visible: int) -> NDArray[np.bool_]:
        """Return which of the first ``visible`` texts hold a term of a query (1, terms): (visible,)."""
        found = np.zeros(self.postings.shape[0], bool)
        for term in query.indices:
            found[self.postings.indices[slice(*self.postings.indptr[term:term + 2])]] = True
        return found[:visible]
