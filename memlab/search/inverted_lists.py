"""Inverted lists: for each number of a set (a centroid, a word) the texts that have a token with it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memlab.models.protocols import Floats, Ints


class InvertedLists:
    """For each of ``numbers`` numbers the distinct texts that hold it, ascending.

    Args:
        held: (t,) a number of each token.
        text_of: (t,) the text of each token.
        numbers: Numbers there are.
    """

    def __init__(self, held: NDArray[np.integer], text_of: NDArray[np.integer], numbers: int) -> None:
        stride = int(text_of.max(initial=0)) + 1
        codes = held.astype(np.int64) * stride
        codes += text_of
        codes.sort()  # in place: a memory of a million turns has 27 million tokens
        codes = codes[np.diff(codes, prepend=-1) > 0]
        self._begins = np.searchsorted(codes, np.arange(numbers + 1) * stride)
        self._texts = np.remainder(codes, stride, out=codes).astype(text_of.dtype)

    def __len__(self) -> int:
        return len(self._begins) - 1

    def texts(self, numbers: Ints) -> tuple[NDArray[np.integer], Ints]:
        """Return the texts of the lists of some numbers (m,), end to end, and the length of each list (m,).

        >>> InvertedLists(np.array([0, 2, 2]), np.array([5, 5, 6]), 3).texts(np.array([2, 1, 0]))
        (array([5, 6, 5]), array([2, 0, 1]))
        """
        begins = self._begins[numbers]
        lengths = self._begins[numbers + 1] - begins
        ends = np.cumsum(lengths)
        at = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begins - ends + lengths, lengths)
        return self._texts[at], lengths

    def write_bounds(self, out: Floats, ids: Ints, products: Floats) -> None:
        """Set ``out[token, text]`` to the product of the closest centroid of a query token that a text holds.

        out: (t, texts), changed in place. ids, products: (t, p) centroids of each query token, the closest last.
        """
        texts, lengths = self.texts(ids.ravel())
        row = np.repeat(np.repeat(np.arange(len(ids)) * out.shape[1], ids.shape[1]), lengths)
        out.ravel()[row + texts] = np.repeat(products.ravel(), lengths)  # of several values the last stays
