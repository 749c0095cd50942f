"""The BM25 formulas, and how a corpus is scored by them.

Five forms, numbered as in Kamphuis et al. 2020, "Which BM25 do you mean?", and Trotman et al. 2014; they are those
of the package bm25s. With N texts, df of them holding the term, tf occurrences in a text of length L, mean A:

    form        idf                                      weight of tf, with n = 1 - b + b L / A
    robertson   ln(max(1, (N - df + .5) / (df + .5)))    tf / (tf + k1 n)
    lucene      ln(1 + (N - df + .5) / (df + .5))        tf / (tf + k1 n)
    atire       ln(N / df)                               tf (k1 + 1) / (tf + k1 n)
    bm25l       ln((N + 1) / (df + .5))                  (k1 + 1) (tf / n + delta) / (k1 + tf / n + delta)
    bm25+       ln((N + 1) / df)                         tf (k1 + 1) / (tf + k1 n) + delta

The last two give a text that lacks the term the weight of tf = 0. Everything is computed over what a query may see:
a memory of a later day changes no count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, csr_array

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


def saturate(form: Form, tf: Reals, norm: Reals, k1: float, delta: float) -> Reals:
    """Return the weight of tf (n,), given the length norm 1 - b + b L / A (n,)."""
    if form == "bm25l":
        scaled = tf / norm + delta
        return (k1 + 1) * scaled / (k1 + scaled)
    if form == "bm25+":
        return tf * (k1 + 1) / (tf + k1 * norm) + delta
    return tf * (k1 + 1 if form == "atire" else 1.0) / (tf + k1 * norm)


@dataclass(frozen=True)
class Corpus:
    """One pool of memories, in the order of the pool: term counts (n, terms) and lengths (n,)."""

    postings: csc_array
    lengths: Ints

    @classmethod
    def of(cls, counts: csr_array, lengths: Ints, rows: Ints) -> Corpus:
        """Take the rows of these texts."""
        postings = counts[rows].tocsc()
        postings.sort_indices()
        return cls(postings, lengths[rows])

    def scores(self, query: csr_array, seen: int, form: Form, k1: float, b: float, delta: float, idf: Idf) -> Reals:
        """Score the first ``seen`` texts for one query (1, terms), each term as often as it is in the query. (seen,)"""
        lengths = self.lengths[:seen]
        mean = lengths.mean() if lengths.any() else 1.0
        norm = 1 - b + b * lengths / mean
        total = np.zeros(seen)
        for term, times in zip(query.indices, query.data):
            start, end = self.postings.indptr[term:term + 2]
            texts = self.postings.indices[start:end]
            df = int(np.searchsorted(texts, seen))
            if df == 0:
                continue
            texts, tf = texts[:df], self.postings.data[start:start + df].astype(np.float64)
            weight = times * idf(seen, df)
            absent = float(saturate(form, np.zeros(1), np.ones(1), k1, delta)[0])  # does not depend on the length
            total += weight * absent
            total[texts] += weight * (saturate(form, tf, norm[texts], k1, delta) - absent)
        return total
