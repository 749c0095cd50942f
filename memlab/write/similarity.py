"""Similarity of memories: the nearest earlier memories, and the key terms that two memories share."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used

from memlab.models.protocols import Floats, Ints
from memlab.tables import DIGITS
from memlab.text.tokenize import words

STOP = tuple(re.findall(r"\S+", """
    a about after again all also am an and any are as at be because been before being but by can could
    did do does doing done down for from further get gets getting go going got had has have having he her here hers
    him his how i if im in into is it its ive just let like lot make many maybe me more most much my myself no nor
    not now of off oh ok okay on once one only or other our ours out over own please quite really s same she should
    so some such t than thank thanks that the their them then there these they thing things this those through to
    too under until up us very want was way we well were what when where which while who whom why will with would
    yeah yes you your yours user assistant"""))
"""Stop words; the other words of a text, stemmed, are its key terms."""

WORD = r"[\w']*\w"
Near = tuple[Ints, Ints, Floats]
"""Pairs of rows: later (m,), earlier (m,), cosine (m,)."""


def concat_pairs(parts: Iterable[Near]) -> Near:
    """Concatenate groups of pairs; there may be none."""
    none = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
    later, earlier, cosine = (np.concatenate(column) for column in zip(none, *parts))
    return later, earlier, cosine


@functools.cache
def stem(word: str) -> str:
    """Stem one English word.

    >>> stem("stories")
    'stori'
    """
    import Stemmer

    return str(Stemmer.Stemmer("english").stemWord(word))


def key_terms(texts: pl.Series) -> scipy.sparse.csr_array:
    """Return the key terms of each text: a row per text with ones where a term occurs, (n, terms).

    >>> key_terms(pl.Series(["My cats sleep", "the cat"])).toarray().sum(axis=1).tolist()
    [2, 1]
    """
    rows = words(texts, WORD, STOP, "english").unique().sort("row", "term")
    at = rows["term"].rank("dense").cast(pl.Int64).to_numpy() - 1
    shape = (len(texts), int(at.max()) + 1 if len(at) else 1)
    ones = np.ones(len(at), np.int32)
    return scipy.sparse.csr_array((ones, (rows["row"].to_numpy().astype(np.int64), at)), shape=shape)


def nearest(vectors: Any, count: int, block: int = 512) -> Near:
    """Return the ``count`` nearest earlier rows of each row.

    ``vectors`` (n, dim) are unit vectors in the order of time. Cosines are rounded to six decimals; the earlier of two
    equal ones comes first. At most ``block`` x n cosines are in memory at a time.

    >>> later, earlier, _ = nearest(np.eye(3, dtype=np.float32)[[0, 1, 0]], 1)
    >>> list(zip(later.tolist(), earlier.tolist()))
    [(1, 0), (2, 0)]
    """
    parts: list[Near] = []
    for start in range(0, len(vectors), block):
        rows = np.arange(start, min(start + block, len(vectors)))
        cosine = np.round(vectors[rows] @ vectors[:rows[-1] + 1].T, DIGITS)
        cosine[np.arange(cosine.shape[1])[None, :] >= rows[:, None]] = -np.inf
        # rows that tie with the last one stay until the cut in the order of time below
        least = np.partition(cosine, -count, axis=1)[:, -count] if count < cosine.shape[1] else -np.inf
        at, earlier = np.nonzero((cosine >= np.reshape(least, (-1, 1))) & (cosine > -np.inf))
        value = cosine[at, earlier]
        order = np.lexsort((earlier, -value, at))
        at, earlier, value = at[order], earlier[order], value[order]
        kept = np.arange(len(at)) - np.searchsorted(at, at) < count
        parts.append((rows[at[kept]], earlier[kept], value[kept]))
    return concat_pairs(parts)


def count_shared(terms: scipy.sparse.csr_array, one: Ints, other: Ints, block: int = 50_000) -> Ints:
    """Count the key terms that row ``one[i]`` and row ``other[i]`` share, (m,)."""
    counts = np.zeros(len(one), np.int64)
    for start in range(0, len(one), block):
        part = slice(start, start + block)
        counts[part] = terms[one[part]].multiply(terms[other[part]]).sum(axis=1)
    return counts
