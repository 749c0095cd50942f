"""Postings: words of a pool of memories with their BM25 scores, and their counts in a live memory.

A store of experiments keeps nothing: there a result depends only on its tables. A live memory's store keeps one of
these for each tokeniser, so that a question tokenises its own words and the texts that were added since the last one.
The figures are as if everything were counted anew, to the last digit: terms have the same order, and so have sums.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from memlab.models.protocols import Ints
from memlab.pipeline.tables import Tables, distinct_texts
from memlab.stages.search.hits import MemoryPool, memory_pools

AT_ONCE = 8192
"""Texts that are tokenised at a time: a token takes some hundred bytes until its term is counted."""

Tokenise = Callable[[pl.Series], pl.DataFrame]
"""Texts (n,) -> one row per token: row (the text's), term. Hashable: words are cached by tokeniser."""


@dataclass(frozen=True, eq=False)
class WordPool:
    """A pool of memories as postings. columns: the number of each term, in the order of their bytes."""

    rows: MemoryPool
    corpus: Corpus
    columns: dict[str, int]

    def count(self, tokens: pl.DataFrame, size: int) -> scipy.sparse.csr_array:
        """Return how often each term (its column) occurs in each of ``size`` texts with these tokens (row, term).

        Terms that no memory has are left out: they add nothing to a score.
        """
        cells = [(row, self.columns[term]) for row, term in tokens.iter_rows() if term in self.columns]
        rows, columns = np.array(cells, np.int64).reshape(-1, 2).T
        counts = scipy.sparse.coo_array((np.ones(len(cells), np.int32), (rows, columns)),
                                        shape=(size, len(self.columns))).tocsr()  # adds up what occurs twice
        counts.sort_indices()  # scores are summed in the order of the terms
        return counts


class CachedWords:
    """The term counts of texts by id, for one tokeniser, and their latest postings."""

    def __init__(self, tokenise: Tokenise) -> None:
        self._tokenise = tokenise
        self._lock = threading.Lock()
        self._ids = pl.Series("text_id", [], pl.String)
        self._terms = pl.Series("term", [], pl.String)
        self._counts = scipy.sparse.csr_array((0, 0), dtype=np.int32)  # (texts, terms)
        self._lengths: Ints = np.empty(0, np.int64)
        self._postings: tuple[scipy.sparse.csc_array, dict[str, int]] | None = None  # of all texts; and the columns

    def of(self, tables: Tables, kinds: Sequence[str] | None) -> list[WordPool]:
        """Return the pools of the memories of these kinds; MemlabError for a kind that no memory has.

        Texts are tokenised that were not there before.
        """
        with self._lock:
            return self._make(tables, kinds)

    def forget(self, left: pl.Series) -> None:
        """Forget all texts but those with these ids (n,), and the terms that no other text has."""
        with self._lock:
            staying = self._ids.is_in(left.implode()).to_numpy()
            counts = self._counts[np.flatnonzero(staying)]
            used = np.unique(counts.indices)
            self._counts = counts[:, used]
            self._ids, self._lengths = self._ids.filter(staying), self._lengths[staying]
            self._terms = pl.Series("term", self._terms.gather(used).to_list(), pl.String)  # views keep old words
            self._postings = None

    def _make(self, tables: Tables, kinds: Sequence[str] | None) -> list[WordPool]:
        pools, key_ids = memory_pools(tables["memories"], kinds), tables["memories"]["key_id"]
        used = [key_ids.gather(pool.memories) for pool in pools]
        rows = self._rows_of(used)
        if any(row.null_count() for row in rows):
            self._add(tables["texts"], pl.concat(used).unique())
            rows = self._rows_of(used)
        if self._postings is None:
            order = self._terms.arg_sort()
            self._postings = (self._counts[:, order.to_numpy()].tocsc(),
                              {term: n for n, term in enumerate(self._terms.gather(order))})
        postings, columns = self._postings
        return [WordPool(pool, Corpus(postings, self._lengths[row], row), columns)
                for pool, row in zip(pools, (row.to_numpy().astype(np.int64) for row in rows))]

    def _rows_of(self, used: Sequence[pl.Series]) -> list[pl.Series]:
        """Return where the texts with some ids are, null for one that is not known yet."""
        at = pl.DataFrame({"text_id": self._ids}).with_row_index("at")
        return [ids.alias("text_id").to_frame().join(at, on="text_id", how="left", maintain_order="left")["at"]
                for ids in used]

    def _add(self, texts: pl.DataFrame, ids: pl.Series) -> None:
        """Tokenise the texts with these ids that are not known yet."""
        new, _ = distinct_texts(texts, ids.filter(~ids.is_in(self._ids.implode())))
        for part in new.iter_slices(AT_ONCE):
            self._count(part)

    def _count(self, new: pl.DataFrame) -> None:
        """Tokenise some texts, and add their counts."""
        tokens = self._tokenise(new["text"])
        terms = pl.concat([self._terms, tokens["term"]]).unique(maintain_order=True)
        cells = (tokens.join(terms.to_frame().with_row_index("id"), on="term")
                 .group_by("row", "id").len("n"))
        size = self._counts.shape[0] + new.height, len(terms)
        old = self._counts.tocoo()
        number, row, term = (cells[name].to_numpy().astype(np.int32) for name in ("n", "row", "id"))  # half of int64
        self._counts = scipy.sparse.coo_array(
            (np.concatenate([old.data, number]), (np.concatenate([old.row, row + np.int32(old.shape[0])]),
                                                  np.concatenate([old.col, term]))), shape=size).tocsr()
        self._lengths = np.concatenate([self._lengths, np.bincount(tokens["row"].to_numpy(), minlength=new.height)])
        self._ids, self._terms, self._postings = pl.concat([self._ids, new["text_id"]]), terms, None


Reals = NDArray[np.float64]
Idf = Callable[[int, int], float]  # (N, df) -> weight of the term


def lucene_idf(n: int, df: int) -> float:
    """Return the weight of a term that df of n memories hold; it is positive."""
    return float(np.log(1 + (n - df + 0.5) / (df + 0.5)))


@dataclass(frozen=True)
class Corpus:
    """One pool of memories, in the order of the pool: term counts of texts and the lengths (n,) of the memories.

    rows: (n,) the text of each memory in the postings, which may be those of more texts; None: the memories are all
    texts, in their order.
    """

    postings: scipy.sparse.csc_array
    lengths: Ints
    rows: Ints | None = None

    @classmethod
    def of(cls, counts: scipy.sparse.csr_array, lengths: Ints, rows: Ints) -> Corpus:
        """Return the corpus of these rows of all texts."""
        postings = counts[rows].tocsc()
        postings.sort_indices()
        return cls(postings, lengths[rows])

    def texts_with(self, term: int, visible: int) -> tuple[Ints, Ints]:
        """Return which of the first ``visible`` memories hold a term, ascending, and how often: (m,), (m,)."""
        start, end = self.postings.indptr[term:term + 2]
        texts, times = self.postings.indices[start:end], self.postings.data[start:end]
        if self.rows is None:
            df = int(np.searchsorted(texts, visible))
            return texts[:df], times[:df]
        of_texts = np.zeros(self.postings.shape[0], times.dtype)
        of_texts[texts] = times
        of_memories = of_texts[self.rows[:visible]]
        found = np.flatnonzero(of_memories)
        return found, of_memories[found]

    def document_frequencies(self, visible: int) -> Ints:
        """Return how many of the first ``visible`` memories hold each term, (terms,)."""
        texts = np.arange(visible) if self.rows is None else self.rows[:visible]
        memories = np.bincount(texts, minlength=self.postings.shape[0])  # with each text
        terms = np.repeat(np.arange(self.postings.shape[1]), np.diff(self.postings.indptr))
        counts = np.bincount(terms, memories[self.postings.indices], self.postings.shape[1])
        return counts.astype(np.int64)

    def scores(self, query: scipy.sparse.csr_array, visible: int, k1: float, b: float, idf: Idf, most: float = 1.0
               ) -> Reals:
        """Score the first ``visible`` texts for a query (1, terms), each term as often as it is there: (visible,).

        A term adds idf times tf ``most`` / (tf + k1 (1 - b + b L / A)): L is the length of the text, A the mean length.
        A text without a term of the query has the score 0.
        """
        lengths = self.lengths[:visible]
        norm = 1 - b + b * lengths / (lengths.mean() if lengths.any() else 1.0)
        total = np.zeros(visible)
        for term, times in zip(query.indices, query.data):
            texts, counts = self.texts_with(term, visible)
            if len(texts):
                tf = counts.astype(np.float64)
                total[texts] += times * idf(visible, len(texts)) * (tf * most / (tf + k1 * norm[texts]))
        return total
