"""Inverted lists over the tokens of many texts, which texts may join and leave.

After Santhanam et al., PLAID (CIKM 2022): a text's match with a query token is estimated by the closest centroid that a
token of the text is assigned to. For a text without any of the probed centroids the estimate is the product of the last
probed one, which is close to an upper bound, as in Lee et al., XTR (NeurIPS 2023).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints
from memlab.search.centroids import TokenCentroids, suitable_number
from memlab.search.inverted_lists import InvertedLists
from memlab.store.segments import key_columns
from memlab.store.token_index import KEYS
from memlab.store.token_vectors import TokenVectors

GROWTH = 4
"""Times the tokens that the centroids were trained for, from which on they are trained anew."""

TAIL = 8
"""The texts that joined last have lists of their own until they are one part in so many of all tokens."""

PIECE = 1 << 16
"""Token vectors that are assigned at a time."""


@dataclass(frozen=True)
class TokenPostings:
    """Some texts by centroid and by token id, as of one search; later changes of ``TokenLists`` leave it as it is.

    Args:
        place: (n,) the column of each text among the columns of the estimates.
        size: Columns; some may be of texts that have left.
        centroids: Of the tokens.
        by_centroid: Texts by centroid; each text is in one of the lists.
        by_id: Texts by token id, likewise.
    """

    place: Ints
    size: int
    centroids: TokenCentroids
    by_centroid: tuple[InvertedLists, ...]
    by_id: tuple[InvertedLists, ...]

    def estimates(self, query: Floats, probes: int) -> Floats:
        """Return the estimated match of each query token (t, dim) with each text, (t, size)."""
        ids, products = self.centroids.closest(query, probes)
        out = np.empty((len(query), self.size), np.float32)
        out[:] = products[:, :1]
        for lists in self.by_centroid:
            lists.write_bounds(out, ids, products)
        return out

    def document_frequencies(self, ids: Ints, memories: Ints) -> Ints:
        """Return in how many memories each token id (t,) occurs, (t,); memories: (size,) those with each text."""
        counts = np.zeros(len(ids), np.int64)
        for lists in self.by_id:
            inside = ids < len(lists)
            texts, lengths = lists.texts(ids[inside])
            row = np.repeat(np.flatnonzero(inside), lengths)
            counts += np.bincount(row, memories[texts], minlength=len(ids)).astype(np.int64)
        return counts


class TokenLists:
    """Texts by centroid and by token id. Searches may run side by side.

    Args:
        number: Centroids; None for ``suitable_number`` of the tokens.
        seed: Of the k-means.

    Attributes:
        assigned: Tokens that were compared with the centroids since these were trained.
    """

    def __init__(self, number: int | None, seed: int) -> None:
        self._number, self._seed = number, seed
        self._lock = threading.Lock()
        self._centroids: TokenCentroids | None = None
        self._trained_on = self.assigned = 0  # tokens
        self._keys = _frame(np.empty((0, 2), np.uint64))
        self._codes = self._ids = np.empty(0, np.int32)  # the centroid and the id of each token
        self._text_of = np.empty(0, np.int64)
        self._in_base = 0  # tokens in the first lists
        self._by_centroid: tuple[InvertedLists, ...] = ()
        self._by_id: tuple[InvertedLists, ...] = ()
        self._latest: tuple[TokenVectors, TokenPostings] | None = None

    def __len__(self) -> int:
        """Return the number of texts, some of which may have left."""
        return len(self._keys)

    def postings(self, texts: TokenVectors) -> TokenPostings:
        """Return the lists of some texts, at least one token; those that are new are assigned to centroids first."""
        with self._lock:
            if self._latest is not None and self._latest[0] is texts:
                return self._latest[1]
            tokens, keys = int(texts.lengths.sum()), _frame(texts.keys())
            if self._centroids is None or tokens > GROWTH * self._trained_on:
                self._keep(np.zeros(len(self), np.bool_))
                self._centroids = TokenCentroids.train(texts, self._number or suitable_number(tokens), self._seed)
                self._trained_on, self.assigned = tokens, 0
            if len(self) > 2 * len(keys):  # most columns are of texts that have left
                self._keep(self._among(keys))
            places = self._places(keys)
            if places.null_count():
                missing = places.is_null().arg_true().to_numpy()
                self._extend(keys[missing], texts.take(missing), self._centroids)
                places = self._places(keys)
            postings = TokenPostings(places.to_numpy().astype(np.int64), len(self), self._centroids, self._by_centroid,
                                     self._by_id)
            self._latest = texts, postings
            return postings

    def forget_other_texts(self, ids: pl.Series) -> None:
        """Forget all texts but those with these ids (n,)."""
        with self._lock:
            self._keep(self._among(_frame(key_columns(ids))))

    def _among(self, keys: pl.DataFrame) -> NDArray[np.bool_]:
        """Return which texts have one of these keys, (texts,)."""
        return self._keys.join(keys.with_columns(among=True), on=KEYS, how="left", maintain_order="left"
                               )["among"].fill_null(False).to_numpy()

    def _places(self, keys: pl.DataFrame) -> pl.Series:
        held = self._keys.with_row_index("place")
        return keys.join(held, on=KEYS, how="left", maintain_order="left")["place"]

    def _keep(self, staying: NDArray[np.bool_]) -> None:
        """Forget all texts but some."""
        self._latest = None
        if staying.all():
            return
        place, tokens = np.cumsum(staying) - 1, staying[self._text_of]
        self._keys = self._keys.filter(staying)
        self._codes, self._ids = self._codes[tokens], self._ids[tokens]
        self._text_of = place[self._text_of[tokens]]
        self._build(0)

    def _extend(self, keys: pl.DataFrame, texts: TokenVectors, centroids: TokenCentroids) -> None:
        """Assign the tokens of new texts to their centroids."""
        codes, ids, text_of = [self._codes], [self._ids], [self._text_of]
        for rows, starts, part in texts.in_pieces(
                PIECE, lambda block, at: (block.ids[at], block.vectors[at], block.scales[at])):
            part_ids, vectors, scales = part
            codes.append(centroids.nearest(vectors.astype(np.float32) * scales[:, None]).astype(np.int32))
            ids.append(part_ids)
            text_of.append(np.repeat(rows + len(self), np.diff(starts)))
        self._codes, self._ids = np.concatenate(codes), np.concatenate(ids)
        self._text_of = np.concatenate(text_of)
        self.assigned += int(texts.lengths.sum())
        self._keys = pl.concat([self._keys, keys])
        self._build(self._in_base)

    def _build(self, in_base: int) -> None:
        """Build the lists of the last texts, or of all where the last have become many."""
        tokens = len(self._codes)
        if in_base == 0 or (tokens - in_base) * TAIL > tokens:
            in_base = tokens
            base = self._lists(0, tokens)
        else:
            base = self._by_centroid[0], self._by_id[0]
        parts = [base, self._lists(in_base, tokens)] if tokens > in_base else [base]
        self._in_base = in_base
        self._by_centroid, self._by_id = tuple(part[0] for part in parts), tuple(part[1] for part in parts)

    def _lists(self, begin: int, end: int) -> tuple[InvertedLists, InvertedLists]:
        assert self._centroids is not None, "no token is held before they are trained"
        text_of, codes, ids = self._text_of[begin:end], self._codes[begin:end], self._ids[begin:end]
        return (InvertedLists(codes, text_of, len(self._centroids)),
                InvertedLists(ids, text_of, int(ids.max(initial=-1)) + 1))


def _frame(keys: NDArray[np.uint64]) -> pl.DataFrame:
    return pl.DataFrame({name: np.ascontiguousarray(keys[:, i]) for i, name in enumerate(KEYS)})
