"""Inverted lists over the tokens of many texts, with insertion and deletion.

After Santhanam et al., PLAID (CIKM 2022): a text's match with a query token is estimated by the closest centroid that a
token of the text is assigned to. For a text without any of the probed centroids the estimate is the product of the last
probed one, which is close to an upper bound, as in Lee et al., XTR (NeurIPS 2023).
"""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints
from memlab.stages.search.centroids import InvertedLists, TokenCentroids, suitable_number
from memlab.store.segment import key_columns, read_arrays, write_arrays
from memlab.store.token_vectors import TokenVectors, gather_tokens
from memlab.support.errors import DiskFault
from memlab.support.progress import progress

KEYS = ("h0", "h1")
"""Columns of the halves of a text's hash."""

GROWTH = 4
"""Times the tokens that the centroids were trained for, from which on they are trained anew."""

TAIL = 8
"""The texts that joined last have lists of their own until they are one part in so many of all tokens."""

PIECE = 1 << 16
"""Token vectors that are assigned at a time."""

UNSAVED = 32
"""The file is written again when one in so many tokens is not in it."""


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
    """Texts by centroid and by token id. Safe for concurrent searches.

    Args:
        number: Centroids; None for ``suitable_number`` of the tokens.
        seed: Of the k-means.
        file: Of the centroids and the codes; None where nothing is saved.

    Attributes:
        assigned: Tokens that were compared with the centroids since these were trained.
    """

    def __init__(self, number: int | None, seed: int, file: Path | None = None) -> None:
        self._number, self._seed, self._file = number, seed, file
        self._unsaved = 0  # tokens that were assigned since
        self._loaded = _Codes.none()  # of texts that have not been asked for since the centroids were read
        self._lock = threading.Lock()
        self._centroids: TokenCentroids | None = None
        self._trained_on = self.assigned = 0  # tokens
        self._keys = _frame(np.empty((0, 2), np.uint64))
        self._codes = self._ids = np.empty(0, np.int32)  # the centroid and the id of each token
        self._text_of = np.empty(0, np.int32)
        self._in_base = 0  # tokens in the first lists
        self._by_centroid: tuple[InvertedLists, ...] = ()
        self._by_id: tuple[InvertedLists, ...] = ()
        self._latest: tuple[TokenVectors, TokenPostings] | None = None

    def __len__(self) -> int:
        """Return the number of texts, some of which may have left."""
        return len(self._keys)

    def of(self, texts: TokenVectors) -> TokenPostings:
        """Return the lists of some texts, at least one token; those that are new are assigned to centroids first."""
        with self._lock:
            if self._latest is not None and self._latest[0] is texts:
                return self._latest[1]
            tokens, keys = int(texts.lengths.sum()), _frame(texts.keys())
            if self._centroids is None and self._file is not None:
                self._load(self._file)
            if self._centroids is None or tokens > GROWTH * self._trained_on:
                self._centroids = self._train(texts, tokens)
            places = self._places(keys)
            if places.null_count():
                missing = places.is_null().arg_true().to_numpy()
                self._extend(keys[missing], texts.take(missing))
                places = self._places(keys)
                if self._file is not None and self._unsaved * UNSAVED > len(self._codes):
                    self._save(self._file, self._centroids)
            postings = TokenPostings(places.to_numpy().astype(np.int64), len(self), self._centroids, self._by_centroid,
                                     self._by_id)
            self._latest = texts, postings
            return postings

    def forget(self, left: pl.Series) -> None:
        """Forget all texts but those with these ids (n,)."""
        with self._lock:
            self._keep(self._among(_frame(key_columns(left))))
            self._loaded = _Codes.none()
            self._file = None  # these centroids know of texts that are forgotten: the next load trains others

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
        place, tokens = np.cumsum(staying, dtype=np.int32) - 1, staying[self._text_of]
        self._keys = self._keys.filter(staying)
        self._codes, self._ids = self._codes[tokens], self._ids[tokens]
        self._text_of = place[self._text_of[tokens]]
        self._build(0)

    def _load(self, file: Path) -> None:
        """Take the centroids and codes of a file; a damaged one is written anew."""
        if (saved := read_arrays(file)) is not None:
            self._centroids, self._trained_on = TokenCentroids(saved["centroids"]), int(saved["trained_on"])
            self._loaded = _Codes(saved["keys"], saved["starts"], saved["codes"])

    def _save(self, file: Path, centroids: TokenCentroids) -> None:
        starts = np.searchsorted(self._text_of, np.arange(len(self) + 1))
        codes = self._codes.astype(np.min_scalar_type(len(centroids)))
        try:
            write_arrays(file, centroids=centroids.vectors, trained_on=self._trained_on, keys=self._keys.to_numpy(),
                         starts=starts, codes=codes)
        except DiskFault as error:
            warnings.warn(f"the index of token vectors is not saved, and made again when the memory is loaded: {error}",
                          stacklevel=2)
        self._unsaved = 0

    def _train(self, texts: TokenVectors, tokens: int) -> TokenCentroids:
        """Return centroids of some texts, and forget all codes."""
        self._keep(np.zeros(len(self), np.bool_))
        self._loaded = _Codes.none()
        number = self._number or suitable_number(tokens)
        with progress("centroids", number, "centroids") as step:
            centroids = TokenCentroids.train(texts, number, self._seed, step)
        self._trained_on, self.assigned = tokens, 0
        return centroids

    def _extend(self, keys: pl.DataFrame, texts: TokenVectors) -> None:
        """Take new texts up, with their saved codes, or else with the codes of the nearest centroids."""
        starts = np.concatenate([[0], np.cumsum(texts.lengths)]).astype(np.int64)
        codes, ids = np.empty(starts[-1], np.int32), np.empty(starts[-1], np.int32)
        for rows, part_starts, part in texts.in_pieces(1 << 62, lambda block, at: block.ids[at]):
            ids[gather_tokens(starts[rows], np.diff(part_starts))[1]] = part
        known = self._loaded.write(codes, keys, starts)
        self._assign(codes, texts.take(np.flatnonzero(~known)), starts[:-1][~known])
        self._codes, self._ids = np.concatenate([self._codes, codes]), np.concatenate([self._ids, ids])
        new = np.repeat(np.arange(len(self), len(self) + len(texts), dtype=np.int32), texts.lengths)
        self._text_of = np.concatenate([self._text_of, new])
        self._keys = pl.concat([self._keys, keys])
        self._loaded = _Codes.none()
        self._build(self._in_base)

    def _assign(self, codes: NDArray[np.int32], texts: TokenVectors, begins: Ints) -> None:
        """Write the nearest centroid of each token of some texts to ``codes``, where text i begins at ``begins[i]``."""
        assert self._centroids is not None, "they are trained before a text is taken up"
        tokens = int(texts.lengths.sum())
        with progress("tokens by centroid", tokens, "tokens") as step:
            for rows, starts, vectors in texts.pieces(PIECE):
                at = gather_tokens(begins[rows], np.diff(starts))[1]
                codes[at] = self._centroids.nearest(vectors)
                step(len(at))
        self.assigned += tokens
        self._unsaved += tokens

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


@dataclass(frozen=True)
class _Codes:
    """Codes of some texts: keys (n, 2), where each starts (n + 1,), codes (t,)."""

    keys: NDArray[np.uint64]
    starts: Ints
    codes: NDArray[np.unsignedinteger]

    @classmethod
    def none(cls) -> _Codes:
        return cls(np.empty((0, 2), np.uint64), np.zeros(1, np.int64), np.empty(0, np.uint16))

    def write(self, codes: NDArray[np.int32], keys: pl.DataFrame, starts: Ints) -> NDArray[np.bool_]:
        """Write the codes of texts (n keys) that are among these to where each starts; return which are, (n,)."""
        held = _frame(self.keys).with_row_index("row").unique(KEYS, keep="first")
        rows = keys.join(held, on=KEYS, how="left", maintain_order="left")["row"]
        lengths = np.append(np.diff(self.starts), -1)[rows.fill_null(len(self.keys)).to_numpy()]
        known: NDArray[np.bool_] = lengths == np.diff(starts)
        source = self.starts[rows.to_numpy()[known].astype(np.int64)]
        codes[gather_tokens(starts[:-1][known], lengths[known])[1]] = self.codes[
            gather_tokens(source, lengths[known])[1]]
        return known


def _frame(keys: NDArray[np.uint64]) -> pl.DataFrame:
    return pl.DataFrame({name: np.ascontiguousarray(keys[:, i]) for i, name in enumerate(KEYS)})

